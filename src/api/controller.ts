/** The handlers of the controller: an operator reads its state and replaces its settings. */
import type { z } from "@hono/zod-openapi";
import { type ControllerView, readController } from "../store/controller-reading.ts";
import { replaceSettings } from "../store/settings-intent.ts";
import type { ControllerSettings } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import { authorise, authoriseEverywhere } from "./auth.ts";
import { readRequiredBody } from "./body.ts";
import type { Api, ApiDeps } from "./context.ts";
import { getControllerRoute, putControllerRoute, settingsSchema } from "./controller-schema.ts";
import { toControllerBody, toSettingsEtag } from "./controller-wire.ts";
import { checkPreconditions, readPreconditions } from "./precondition.ts";
import { Problem } from "./problem.ts";
import { untilWritten } from "./retrying.ts";
import type { Asked } from "./writing.ts";
import { toOptionalTimestamp } from "./wire.ts";

/** A brake that is off for longer is forgotten. */
const MAX_RELEASE_MS = 24 * 3_600_000;

export function registerController(app: Api, deps: ApiDeps): void {
  app.openapi(getControllerRoute, async (c) => {
    authorise(c.var.principal, "operate", null);
    const view = await readController(deps.db);
    return c.json(toControllerBody(view, deps.config, deps.now()), 200, { ETag: toSettingsEtag(view) });
  });

  app.openapi(putControllerRoute, async (c) => {
    authoriseEverywhere(c.var.principal);
    const settings = toSettings(await readRequiredBody(c.req.raw, settingsSchema));
    const asked = { actor: c.var.principal.name, preconditions: readPreconditions(c.req.raw.headers) };
    const view = await applySettings(deps, settings, asked);
    return c.json(toControllerBody(view, deps.config, deps.now()), 200, { ETag: toSettingsEtag(view) });
  });
}

function toSettings(body: z.infer<typeof settingsSchema>): ControllerSettings {
  const { paused, gcMode, allowEmpty, laneWidth, brakeReleasedUntilTime } = body;
  return { paused, gcMode, allowEmpty, laneWidth, brakeReleasedUntilTime };
}

async function applySettings(deps: ApiDeps, settings: ControllerSettings, { actor, preconditions }: Asked): Promise<ControllerView> {
  return await untilWritten(async () => {
    const [current, now] = [await readController(deps.db), deps.now()];
    checkRelease(settings, now);
    checkPreconditions(preconditions, [toSettingsEtag(current)]);
    const changes = describeChanges(current.settings, settings);
    if (changes.length === 0) return current;
    const { revision } = current;
    const isWritten = await replaceSettings(deps.db, { revision, settings, message: `${changes.join("; ")}.`, actor, now });
    return isWritten ? { ...current, settings, revision: revision + 1 } : null;
  });
}

/** Throws INVALID_BODY. */
function checkRelease({ brakeReleasedUntilTime }: ControllerSettings, now: Instant): void {
  if (brakeReleasedUntilTime === null || brakeReleasedUntilTime <= now + MAX_RELEASE_MS) return;
  const errors = [{ pointer: "/brakeReleasedUntilTime", detail: "must be at most 24 hours ahead" }];
  throw new Problem("INVALID_BODY", "The body is not valid; see errors.", { errors });
}

function describeChanges(before: ControllerSettings, after: ControllerSettings): readonly string[] {
  const fields = Object.keys(after) as (keyof ControllerSettings)[];
  return fields
    .filter((field) => before[field] !== after[field])
    .map((field) => `${field}: ${describe(field, before)} to ${describe(field, after)}`);
}

function describe(field: keyof ControllerSettings, settings: ControllerSettings): string {
  return String(field === "brakeReleasedUntilTime" ? toOptionalTimestamp(settings[field]) : settings[field]);
}
