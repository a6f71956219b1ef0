/** The API alone, with the real clock: what `SELF` answers in these tests. */
import { createApi } from "../../../src/api/app.ts";
import { parseConfig } from "../../../src/config.ts";
import { openDatabase } from "../../../src/store/db.ts";
import { testDoIdOf } from "./do-id.ts";

export default {
  fetch(request: Request, env: { readonly DB: D1Database }): Response | Promise<Response> {
    const api = createApi({
      db: openDatabase(env.DB),
      config: parseConfig(env),
      now: () => Date.now(),
      sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      newUid: () => crypto.randomUUID(),
      newRequestId: () => crypto.randomUUID(),
      doIdOf: testDoIdOf,
    });
    return api.fetch(request);
  },
};
