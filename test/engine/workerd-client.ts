import { request } from "node:http";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { Socket } from "node:net";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export interface ClientOptions {
  readonly socketPath: string;
  readonly doId: string;
  readonly className?: string;
  readonly worker?: string;
  readonly session?: string;
}

/** Speaks to the engine in the order in which workerd does, for one Durable Object. */
export class WorkerdClient {
  readonly name: string;
  readonly #options: ClientOptions;
  #ingressPort = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
    const session = options.session === undefined ? "" : `${options.session}-`;
    this.name = `workerd-${session}${options.worker ?? "my-worker"}-${options.className ?? "Box"}-${options.doId}`;
  }

  call(method: string, path: string, body?: unknown): Promise<Answer> {
    return this.send(method, path, body).answer;
  }

  /** The answer, and what drops the connection before it comes. */
  send(method: string, path: string, body?: unknown): { answer: Promise<Answer>; drop: () => void } {
    const outgoing = request({
      socketPath: this.#options.socketPath,
      method,
      path,
      agent: false,
      headers: { "Content-Type": "application/json" },
    });
    const answer = new Promise<Answer>((resolve, reject) => {
      outgoing
        .once("error", reject)
        .once(
          "response",
          (response) => void readAll(response).then((text) => resolve({ status: response.statusCode ?? 0, body: text }), reject),
        );
    });
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    return { answer, drop: () => void outgoing.destroy() };
  }

  /** What an object does when it comes to life: is its container running? */
  async status(): Promise<boolean> {
    const answer = await this.call("GET", `/containers/${this.name}/json`);
    if (answer.status === 404 || (JSON.parse(answer.body) as Inspection).State.Status !== "running") return false;
    await this.#findIngress();
    return true;
  }

  async openSidecar(): Promise<void> {
    await this.call("DELETE", `/containers/${this.name}-proxy?force=true`);
    await this.call("POST", `/containers/create?name=${this.name}-proxy`, { Image: "proxy", ExposedPorts: { "39001/tcp": {} } });
    await this.call("POST", `/containers/${this.name}-proxy/start`);
    await this.#findIngress();
  }

  create(image = "image", env: readonly string[] = []): Promise<Answer> {
    const labels = this.#options.session === undefined ? {} : { Labels: { "dev.workerd.session": this.#options.session } };
    return this.call("POST", `/containers/create?name=${this.name}`, { Image: image, Env: env, ...labels });
  }

  startCreated(): Promise<Answer> {
    return this.call("POST", `/containers/${this.name}/start`);
  }

  /** Sidecar, create, start: the answer to the start. */
  async start(image = "image", env: readonly string[] = []): Promise<Answer> {
    if (this.#ingressPort === 0) await this.openSidecar();
    const created = await this.create(image, env);
    return created.status === 201 ? this.startCreated() : created;
  }

  monitor(): { answer: Promise<Answer>; drop: () => void } {
    return this.send("POST", `/containers/${this.name}/wait`);
  }

  signal(name: string): Promise<Answer> {
    return this.call("POST", `/containers/${this.name}/kill?signal=${name}`);
  }

  /** What `destroy()` sends. */
  async destroy(): Promise<void> {
    await this.call("DELETE", `/containers/${this.name}?force=true`);
    await this.call("POST", `/containers/${this.name}/wait?condition=removed`);
  }

  /** What workerd sends after it dropped the object from memory. */
  async evict(): Promise<void> {
    await this.destroy();
    await this.call("DELETE", `/containers/${this.name}-proxy?force=true`);
    await this.call("POST", `/containers/${this.name}-proxy/wait?condition=removed`);
    this.#ingressPort = 0;
  }

  /** A stream to a port of the container, or the status of the refusal. */
  connect(port: number): Promise<Socket | Answer> {
    const target = `127.0.0.1:${port}`;
    const outgoing = request({
      host: "127.0.0.1",
      port: this.#ingressPort,
      method: "CONNECT",
      path: target,
      headers: { "X-Dst-Addr": target },
      agent: false,
    });
    return new Promise((resolve, reject) => {
      outgoing.once("error", reject).once("connect", (response, socket, head) => {
        if (response.statusCode === 200) resolve(socket);
        else resolve({ status: response.statusCode ?? 0, body: head.toString("utf8") });
      });
      outgoing.end();
    });
  }

  async fetch(path: string, port = 3000): Promise<Answer> {
    const socket = await this.connect(port);
    if ("status" in socket) return socket;
    const outgoing = request({ createConnection: () => socket, path, headers: { Connection: "close" } });
    return new Promise((resolve, reject) => {
      outgoing
        .once("error", reject)
        .once("response", (response) => void readAll(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject));
      outgoing.end();
    });
  }

  async untilListening(): Promise<void> {
    while ((await this.fetch("/")).status !== 200) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  async #findIngress(): Promise<void> {
    const answer = await this.call("GET", `/containers/${this.name}-proxy/json`);
    const port = (JSON.parse(answer.body) as Inspection).NetworkSettings.Ports["39001/tcp"]?.[0]?.HostPort;
    if (port === undefined) throw new Error("the sidecar is not running");
    this.#ingressPort = Number(port);
  }
}

interface Inspection {
  readonly State: { readonly Status: string };
  readonly NetworkSettings: { readonly Ports: Readonly<Record<string, readonly { readonly HostPort: string }[]>> };
}

async function readAll(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return text;
}

/** Resolves once the local port refuses or accepts as wanted. */
export async function untilPort(port: number, wanted: boolean): Promise<void> {
  for (;;) {
    const accepts = await new Promise<boolean>((resolve) => {
      const socket = connect({ host: "127.0.0.1", port });
      socket
        .once("connect", () => resolve(true))
        .once("error", () => resolve(false))
        .once("connect", () => socket.destroy());
    });
    if (accepts === wanted) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
