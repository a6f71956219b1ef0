/** The native container with some of its methods replaced. */
export function replaceMethods(native: Container, methods: Partial<Pick<Container, "start" | "monitor" | "getTcpPort">>): Container {
  const replaced = new Map<string | symbol, unknown>(Object.entries(methods));
  return new Proxy(native, {
    get(target, property) {
      if (replaced.has(property)) return replaced.get(property);
      // Native getters and methods insist on the native receiver.
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Puts a container on `ctx`. Before the SDK's constructor runs, which keeps its own reference. */
export function replaceContainer(ctx: DurableObjectState<{}>, container: Container): void {
  Object.defineProperty(ctx, "container", { configurable: true, value: container });
}

export function containerOf(ctx: DurableObjectState<{}>): Container {
  if (ctx.container === undefined) throw new Error("Containers have not been enabled for this Durable Object class");
  return ctx.container;
}
