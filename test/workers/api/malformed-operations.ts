/** Requests about the controller, its instances and a workspace's verbs that are wrong by construction, each in one way. */
import fc from "fast-check";
import { CANARY, JSON_HEADERS, type Malformed, anyText, request } from "./malformed-parts.ts";
import { PATH } from "./support.ts";

const DO_ID = "a".repeat(64);
const BACKUPS = `${PATH}/backups`;
/** Paths that know a POST and no more than an empty body, or nearly. */
export const VERBS = [BACKUPS, `${PATH}:wake`, `${PATH}:reconcile`, `/v1/instances/${DO_ID}:destroy`, `/v1/instances/${DO_ID}:protect`];

const SETTINGS = new Set(
  "paused gcMode allowEmpty laneWidth brakeReleasedUntilTime revision etag effective lease lastSweep brake startBrake conditions backups".split(
    " ",
  ),
);

/** Bodies that say more than their request knows, or say it in another way. */
const badRequest = fc
  .tuple(
    fc.constantFrom(...VERBS.map((path) => ["POST", path] as const), ["PUT", "/v1/controller"] as const),
    anyText.filter((key) => !SETTINGS.has(key) && key !== "protected"),
    fc.jsonValue({ maxDepth: 4 }),
    fc.boolean(),
  )
  .map(([[method, path], key, value, asList]) => {
    const body = asList ? JSON.stringify([value]) : `{${JSON.stringify(key)}:${JSON.stringify(value)}}`;
    return { method, path, headers: JSON_HEADERS, body };
  });

const badSetting = fc
  .tuple(fc.constantFrom("paused", "gcMode", "allowEmpty", "laneWidth", "brakeReleasedUntilTime"), fc.jsonValue({ maxDepth: 3 }))
  .map(([field, value]) => ({ method: "PUT", path: "/v1/controller", headers: JSON_HEADERS, body: JSON.stringify({ [field]: [value] }) }));

const badAdoption = fc
  .tuple(
    fc.constantFrom("namespace", "name", "sandboxId", "metadata", "spec", "env"),
    fc.jsonValue({ maxDepth: 3 }).map((value) => [value]),
  )
  .map(([field, value]) => {
    const spec = field === "env" ? { env: { SECRET: CANARY } } : {};
    const body = JSON.stringify({ namespace: "default", name: "a", spec, [field]: field === "env" ? undefined : value });
    return { method: "POST", path: `/v1/instances/${DO_ID}:adopt`, headers: JSON_HEADERS, body };
  });

const badDoId = fc
  .tuple(fc.oneof(fc.webSegment(), fc.stringMatching(/^[0-9a-fA-F]{1,70}$/)), fc.constantFrom("destroy", "protect", "adopt"))
  .filter(([doId]) => !/^[0-9a-f]{64}$/.test(doId))
  .map(([doId, verb]) => request("POST", `/v1/instances/${doId}:${verb}`));

const badBackupId = fc
  .tuple(fc.oneof(fc.webSegment(), fc.stringMatching(/^[0-9a-f-]{1,40}$/)), fc.constantFrom("GET", "DELETE"))
  .filter(([id]) => !/^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/.test(id) && id !== "" && id !== "." && id !== "..")
  .map(([id, method]) => request(method, `${BACKUPS}/${id}`));

/** Right in every letter, and of nothing. */
const unknownBackup = fc
  .tuple(fc.uuid(), fc.constantFrom("GET", "DELETE"))
  .map(([id, method]) => request(method, `/v1/namespaces/default/workspaces/nobody/backups/${id}`));

const badVerb = fc
  .tuple(
    fc.constantFrom(PATH, `/v1/instances/${DO_ID}`),
    fc.stringMatching(/^[a-z]{0,12}$/).filter((verb) => !["wake", "reconcile", "destroy", "protect", "adopt"].includes(verb)),
    fc.constantFrom("GET", "POST", "PUT", "DELETE"),
  )
  .map(([path, verb, method]) => request(method, `${path}:${verb}`));

export const badOperation: fc.Arbitrary<Malformed> = fc.oneof(
  { weight: 3, arbitrary: badRequest },
  { weight: 2, arbitrary: badSetting },
  { weight: 2, arbitrary: badAdoption },
  { weight: 2, arbitrary: badDoId },
  { weight: 2, arbitrary: badBackupId },
  { weight: 1, arbitrary: unknownBackup },
  { weight: 1, arbitrary: badVerb },
);
