import type { Container } from "./container.ts";
import type { ContainerName } from "./container-name.ts";
import type { DockerApiOptions, DockerCall, Outcome } from "./docker-call.ts";
import type { ExecTable } from "./exec-table.ts";
import { CAPACITY_MESSAGE } from "./faults.ts";
import type { Holding, Sidecar } from "./registry.ts";

const SIDECAR_PORT = "39001/tcp";
const SESSION_LABEL = "dev.workerd.session";

export interface ContainerCall extends DockerApiOptions {
  readonly execs: ExecTable;
  readonly call: DockerCall;
  readonly named: ContainerName;
}

const NO_SUCH_CONTAINER: Outcome = { status: 404, json: { message: "no such container" } };

/** Answers a call that names a container: `/containers/create?name=` or `/containers/NAME/…`. */
export function answerContainerCall(context: ContainerCall): Promise<Outcome> | Outcome {
  const { call, named, registry } = context;
  const { method, segments } = call;
  if (method === "POST" && segments[1] === "create") return create(context);
  const holding = registry.find(named);
  const action = `${method} ${segments[2] ?? ""}`.trim();
  if (named.role === "Sidecar") return answerSidecar(context, action, holding);
  const container = holding?.container;
  if (holding === undefined || container === undefined) return NO_SUCH_CONTAINER;
  return answerApp(context, action, holding, container);
}

async function create({ call, named, registry, ledger, lifecycle }: ContainerCall): Promise<Outcome> {
  const body = JSON.parse(call.body.toString("utf8")) as { Image?: string; Env?: string[]; Labels?: Record<string, string> };
  const session = body.Labels?.[SESSION_LABEL];
  const workerName = session === undefined ? named.prefix : named.prefix.replace(`${session}-`, "");
  const image = body.Image ?? "";
  const name = call.query.get("name") ?? "";
  if (named.role === "App" && lifecycle.refusesImage(named)) {
    ledger.count("failedStarts");
    return { status: 404, json: { message: `No such image: ${image}` } };
  }
  const environment = parseEnvironment(body.Env ?? []);
  const answer = await registry.create(named, { name, image, environment, workerName });
  switch (answer.kind) {
    case "Created":
      return { status: 201, json: { Id: answer.dockerId, Warnings: [] } };
    case "Exists":
      return { status: 409, json: { message: `Conflict. The container name "/${name}" is already in use` } };
    case "NoSuchImage":
      return { status: 404, json: { message: `No such image: ${image}` } };
  }
}

async function answerSidecar({ named, registry, call }: ContainerCall, action: string, holding: Holding | undefined): Promise<Outcome> {
  const sidecar = holding?.sidecar;
  if (holding === undefined || sidecar === undefined) return NO_SUCH_CONTAINER;
  switch (action) {
    case "GET json":
      return { status: 200, json: inspectSidecar(sidecar) };
    case "POST start":
      return { status: (await registry.startSidecar(holding, sidecar)) ? 204 : 304 };
    case "DELETE":
      await registry.deleteSidecar(named, holding);
      return { status: 204 };
    case "POST wait":
      // Asked for only after a delete. When the delete was not carried out, its caller must not learn of it.
      return call.query.get("condition") === "removed" ? NO_SUCH_CONTAINER : "Unimplemented";
    default:
      return "Unimplemented";
  }
}

const CAN_FLAKE: ReadonlySet<string> = new Set(["POST start", "POST kill", "DELETE"]);

async function answerApp(context: ContainerCall, action: string, holding: Holding, container: Container): Promise<Outcome> {
  const { lifecycle, registry, named, call, execs } = context;
  if (CAN_FLAKE.has(action) && lifecycle.flakes()) return { status: 500, json: { message: "the engine failed this call" } };
  switch (action) {
    case "GET json":
      await registry.inspected(named, container);
      return inspect(context, container);
    case "POST start":
      return start(context, container);
    case "POST wait":
      if (call.query.get("condition") !== "removed") return wait(container, call);
      registry.removalAwaited(named);
      return NO_SUCH_CONTAINER;
    case "POST kill":
      return signal(context, container);
    case "POST stop":
      if (!container.running) return { status: 304 };
      await lifecycle.end(container, 143);
      return { status: 204 };
    case "DELETE":
      await registry.deleteContainer(named, holding, container);
      return { status: 204 };
    case "POST exec":
      return execs.create(container, call);
    case "PUT archive":
      return { status: 200 };
    default:
      return "Unimplemented";
  }
}

function inspect({ lifecycle }: ContainerCall, container: Container): Outcome {
  if (!container.visible) return NO_SUCH_CONTAINER;
  if (container.running) lifecycle.adopt(container);
  const status = container.running ? "running" : container.state === "Created" ? "created" : "exited";
  return {
    status: 200,
    json: {
      Id: container.dockerId,
      Name: `/${container.name}`,
      State: {
        Status: status,
        Running: container.running,
        ExitCode: container.exitCode ?? 0,
        StartedAt: new Date(container.startedTime).toISOString(),
      },
      Config: { Image: container.image },
      NetworkSettings: { Ports: {} },
    },
  };
}

function inspectSidecar(sidecar: Sidecar): unknown {
  const running = sidecar.ingress !== undefined;
  const bindings = sidecar.ingress === undefined ? {} : { [SIDECAR_PORT]: [{ HostIp: "0.0.0.0", HostPort: String(sidecar.ingress.port) }] };
  return {
    Id: sidecar.dockerId,
    Name: `/${sidecar.name}`,
    State: { Status: running ? "running" : "created", Running: running, ExitCode: 0 },
    Config: { Image: sidecar.image },
    NetworkSettings: { Ports: bindings },
  };
}

async function start({ lifecycle }: ContainerCall, container: Container): Promise<Outcome> {
  const answer = await lifecycle.start(container);
  switch (answer.kind) {
    case "Started":
    // The platform accepts the start and refuses the instance afterwards: the wait call and the ports tell.
    case "Refused":
      return { status: 204 };
    case "AlreadyStarted":
      return { status: 304 };
    case "Failed":
      return { status: 500, json: { message: answer.message } };
  }
}

function wait(container: Container, call: DockerCall): Promise<Outcome> | Outcome {
  if (container.state === "Refused") return { status: 503, json: { message: CAPACITY_MESSAGE } };
  if (container.leaving !== undefined) return NO_SUCH_CONTAINER;
  if (container.ghost) return "Dropped";
  if (!container.running) return { status: 200, json: { StatusCode: container.exitCode ?? 0 } };
  return new Promise((resolve) => {
    const detach = container.watch({
      exited: (exitCode) => resolve({ status: 200, json: { StatusCode: exitCode } }),
      cut: () => resolve("Dropped"),
    });
    call.response.once("close", detach);
  });
}

function signal({ lifecycle, call }: ContainerCall, container: Container): Outcome {
  if (!container.running) return { status: 409, json: { message: "container is not running" } };
  const name = (call.query.get("signal") ?? "SIGKILL") as NodeJS.Signals;
  if (name === "SIGKILL") void lifecycle.end(container, 137);
  else if (name !== "SIGTERM" || lifecycle.faultsOf(container).ignoreSigterm !== true) container.process?.signal(name);
  return { status: 204 };
}

function parseEnvironment(lines: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    lines.map((line) => {
      const separator = line.indexOf("=");
      return separator === -1 ? [line, ""] : [line.slice(0, separator), line.slice(separator + 1)];
    }),
  );
}
