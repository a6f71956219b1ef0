/**
 * The program that runs as the container on the local engine.
 *
 * It first tries to become the same program inside a private view of the filesystem, and loads the server only where
 * it stays: the modules would otherwise be loaded twice at each start.
 */
import { enterNamespace } from "./enter-namespace.ts";

if (process.env["MOORING_ENTERED"] === undefined && process.env["MOORING_ISOLATION"] !== "paths") enterNamespace();

const { startServer } = await import("./server.ts");
await startServer();
