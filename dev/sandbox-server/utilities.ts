import { validationError } from "./errors.ts";
import { now } from "./event-stream.ts";
import type { SessionRequest, Sessions } from "./sessions.ts";
import { SANDBOX_VERSION } from "./settings.ts";

/** The operations on the container itself and its sessions, with the arguments and answers of the SDK's own interface. */
export function utilityOperations(sessions: Sessions) {
  return {
    ping: async () => "healthy",
    getVersion: async () => SANDBOX_VERSION,
    getCommands: async (): Promise<readonly string[]> => [],
    async createSession(request: SessionRequest) {
      if (typeof request.id !== "string" || request.id === "") throw validationError("id", "A session needs an id");
      sessions.create(request);
      const message = `Session ${request.id} created`;
      return { success: true, id: request.id, message, timestamp: now(), containerPlacementId: sessions.placementId };
    },
    async deleteSession(sessionId: string) {
      await sessions.delete(sessionId);
      return { success: true, sessionId, timestamp: now() };
    },
    listSessions: async () => ({ sessions: sessions.ids }),
  };
}
