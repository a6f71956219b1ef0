/** The environment, parsed: defaults, units, and messages that name the variable and never its value. */
import { describe, expect, test } from "vitest";
import { ConfigError, parseConfig, quotaOf, runningLimitsOf } from "../../src/config.ts";

const DIGEST = "ab".repeat(32);
/** Stands for whatever must not be shown. */
const SECRET = "hunter2";

test("an empty environment is usable", () => {
  expect(parseConfig({})).toEqual({
    tokens: [],
    startLaneWidth: 1,
    tickBudgetMs: 55_000,
    pollIntervalMs: 1000,
    resyncIntervalMs: 300_000,
    startTimeoutMs: 120_000,
    prepareTimeoutMs: 900_000,
    backups: null,
    leaseMs: 30_000,
    sweepIntervalMs: 30_000,
    orphanGraceMs: 120_000,
    gcMode: "Enforce",
    quotas: {},
    platform: null,
    eventRetentionMs: 604_800_000,
  });
});

type Row = readonly [variable: string, value: unknown, field: string, expected: unknown];

// oxfmt-ignore
const values: readonly Row[] = [
  ["START_LANE_WIDTH",        "3",      "startLaneWidth",   3],
  ["TICK_BUDGET_SECONDS",     "10",     "tickBudgetMs",     10_000],
  ["POLL_INTERVAL_MS",        "50",     "pollIntervalMs",   50],
  ["RESYNC_INTERVAL_SECONDS", 60,       "resyncIntervalMs", 60_000],
  ["START_TIMEOUT_SECONDS",   "90",     "startTimeoutMs",   90_000],
  ["PREPARE_TIMEOUT_SECONDS", "7200",   "prepareTimeoutMs", 7_200_000],
  ["LEASE_SECONDS",           "2",      "leaseMs",          2000],
  ["SWEEP_INTERVAL_SECONDS",  "1",      "sweepIntervalMs",  1000],
  ["SWEEP_INTERVAL_SECONDS",  "3600",   "sweepIntervalMs",  3_600_000],
  ["ORPHAN_GRACE_SECONDS",    "0",      "orphanGraceMs",    0],
  ["ORPHAN_GRACE_SECONDS",    "86400",  "orphanGraceMs",    86_400_000],
  ["GC_MODE",                 "Off",    "gcMode",           "Off"],
  ["GC_MODE",                 "Report", "gcMode",           "Report"],
  ["EVENT_RETENTION_SECONDS", "60",     "eventRetentionMs", 60_000],
  ["NAMESPACE_QUOTAS",        `{"team-a":{"maxRunning":2},"*":{"maxWorkspaces":0}}`, "quotas", { "team-a": { maxWorkspaces: null, maxRunning: 2 }, "*": { maxWorkspaces: 0, maxRunning: null } }],
  ["API_TOKENS",              `[{"name":"ci","sha256":"${DIGEST}","role":"editor"}]`, "tokens", [{ name: "ci", sha256: DIGEST, role: "editor", namespaces: ["*"] }]],
];

test.for(values)("%s=%s", ([variable, value, field, expected]) => {
  expect(parseConfig({ [variable]: value })).toMatchObject({ [field]: expected });
});

describe("the platform's list", () => {
  const pair = { CLOUDFLARE_ACCOUNT_ID: "acc", CLOUDFLARE_API_TOKEN: SECRET };

  test("is to be had with a pair of credentials", () => {
    expect(parseConfig(pair).platform).toEqual({
      accountId: "acc",
      apiToken: SECRET,
      application: "mooring-workspacesandbox",
      baseUrl: null,
    });
    const elsewhere = { CONTAINER_APPLICATION: "other", CLOUDFLARE_API_BASE_URL: "http://localhost:1/v4" };
    expect(parseConfig({ ...pair, ...elsewhere }).platform).toMatchObject({ application: "other", baseUrl: "http://localhost:1/v4" });
  });

  test("is done without where there are none, whatever else is said of it", () => {
    expect(parseConfig({ CONTAINER_APPLICATION: "other" }).platform).toBeNull();
  });

  test.for(Object.entries(pair))("half a pair is a mistake: only %s", ([variable, value]) => {
    const message = failureOf({ [variable]: value });
    expect(message).toMatch(/CLOUDFLARE_ACCOUNT_ID and CLOUDFLARE_API_TOKEN go together/);
    expect(message).not.toContain(SECRET);
  });
});

describe("backups", () => {
  const BACKUP_BUCKET = { list: () => {} };
  const keys = { BACKUP_BUCKET_NAME: "archives", R2_ACCESS_KEY_ID: "key", R2_SECRET_ACCESS_KEY: SECRET };
  const presigned = { BACKUP_MODE: "presigned", BACKUP_BUCKET, ...keys, CLOUDFLARE_R2_ACCOUNT_ID: "acc" };

  test("are taken where a mode says so, with the defaults of everything else", () => {
    expect(parseConfig({ BACKUP_MODE: "local", BACKUP_BUCKET }).backups).toEqual({
      mode: "local",
      timeoutMs: 600_000,
      sweepIntervalMs: 3_600_000,
      orphanGraceMs: 86_400_000,
      keepAfterDeletionMs: 2_592_000_000,
    });
    expect(parseConfig(presigned).backups?.mode).toBe("presigned");
  });

  test("are not taken without a mode, whatever else is there", () => {
    expect(parseConfig({ ...presigned, BACKUP_MODE: undefined }).backups).toBeNull();
  });

  test("have times of their own", () => {
    const seconds = {
      BACKUP_TIMEOUT_SECONDS: "60",
      BACKUP_SWEEP_INTERVAL_SECONDS: "30",
      BACKUP_ORPHAN_GRACE_SECONDS: "300",
      DELETED_BACKUP_RETENTION_SECONDS: "0",
    };
    expect(parseConfig({ BACKUP_MODE: "local", BACKUP_BUCKET, ...seconds }).backups).toMatchObject({
      timeoutMs: 60_000,
      sweepIntervalMs: 30_000,
      orphanGraceMs: 300_000,
      keepAfterDeletionMs: 0,
    });
  });

  test("that are being taken are never old enough to be nobody's", () => {
    const environment = { BACKUP_MODE: "local", BACKUP_BUCKET, BACKUP_ORPHAN_GRACE_SECONDS: "0", BACKUP_TIMEOUT_SECONDS: "100" };
    expect(parseConfig(environment).backups?.orphanGraceMs).toBe(200_000);
  });

  test.for([undefined, null, "archives"])("in a bucket that is %s are a mistake", (bucket) => {
    const message = failureOf({ BACKUP_MODE: "local", BACKUP_BUCKET: bucket });
    expect(message).toBe("The environment is not usable: BACKUP_MODE is local, and these are missing: BACKUP_BUCKET (an R2 binding)");
  });

  test.for(["BACKUP_BUCKET", ...Object.keys(keys), "CLOUDFLARE_R2_ACCOUNT_ID"])(
    "by presigned URL need %s, and nothing else is named",
    (name) => {
      const message = failureOf({ ...presigned, [name]: undefined });
      const [, missing = ""] = message.split("these are missing: ");
      expect(missing).toMatch(new RegExp(`^${name}( \\(an R2 binding\\)| or CLOUDFLARE_ACCOUNT_ID)?$`));
      expect(message).not.toContain(SECRET);
    },
  );

  test("by presigned URL have all that is missing named in one message", () => {
    expect(failureOf({ BACKUP_MODE: "presigned" })).toBe(
      "The environment is not usable: BACKUP_MODE is presigned, and these are missing: BACKUP_BUCKET (an R2 binding), " +
        "BACKUP_BUCKET_NAME, R2_ACCESS_KEY_ID, R2_SECRET_ACCESS_KEY, CLOUDFLARE_R2_ACCOUNT_ID or CLOUDFLARE_ACCOUNT_ID",
    );
  });

  test("by presigned URL make do with the account that the platform's list is asked for", () => {
    const account = { CLOUDFLARE_ACCOUNT_ID: "acc", CLOUDFLARE_API_TOKEN: "token", CLOUDFLARE_R2_ACCOUNT_ID: undefined };
    expect(parseConfig({ ...presigned, ...account }).backups?.mode).toBe("presigned");
    expect(parseConfig({ ...presigned, ...account, CLOUDFLARE_API_TOKEN: undefined })).toMatchObject({
      backups: { mode: "presigned" },
      platform: null,
    });
  });
});

describe("a value that is no good", () => {
  type BadRow = readonly [variable: string, value: unknown];

  // oxfmt-ignore
  const bad: readonly BadRow[] = [
    ["START_LANE_WIDTH",        "0"],
    ["START_LANE_WIDTH",        "101"],
    ["START_LANE_WIDTH",        "1.5"],
    ["TICK_BUDGET_SECONDS",     SECRET],
    ["POLL_INTERVAL_MS",        "49"],
    ["RESYNC_INTERVAL_SECONDS", "0"],
    ["START_TIMEOUT_SECONDS",   "901"],
    ["PREPARE_TIMEOUT_SECONDS", "7201"],
    ["BACKUP_MODE",             SECRET],
    ["BACKUP_MODE",             ""],
    ["BACKUP_TIMEOUT_SECONDS",  "0"],
    ["BACKUP_SWEEP_INTERVAL_SECONDS", "86401"],
    ["BACKUP_ORPHAN_GRACE_SECONDS", "-1"],
    ["DELETED_BACKUP_RETENTION_SECONDS", SECRET],
    ["BACKUP_BUCKET_NAME",      ""],
    ["R2_ACCESS_KEY_ID",        ""],
    ["R2_SECRET_ACCESS_KEY",    ""],
    ["CLOUDFLARE_R2_ACCOUNT_ID", ""],
    ["LEASE_SECONDS",           "1"],
    ["SWEEP_INTERVAL_SECONDS",  "0"],
    ["SWEEP_INTERVAL_SECONDS",  "3601"],
    ["ORPHAN_GRACE_SECONDS",    "-1"],
    ["ORPHAN_GRACE_SECONDS",    "86401"],
    ["GC_MODE",                 SECRET],
    ["GC_MODE",                 "enforce"],
    ["EVENT_RETENTION_SECONDS", "59"],
    ["CLOUDFLARE_API_BASE_URL", SECRET],
    ["CLOUDFLARE_ACCOUNT_ID",   ""],
    ["CLOUDFLARE_API_TOKEN",    ""],
    ["CONTAINER_APPLICATION",   ""],
    ["NAMESPACE_QUOTAS",        `{"a":${SECRET}`],
    ["NAMESPACE_QUOTAS",        `"${SECRET}"`],
    ["NAMESPACE_QUOTAS",        `{"a":{"maxRunning":"${SECRET}"}}`],
    ["NAMESPACE_QUOTAS",        `{"a":{"maxRunning":-1}}`],
    ["NAMESPACE_QUOTAS",        `{"a":{"maxRunning":1.5}}`],
    ["NAMESPACE_QUOTAS",        `{"a":{"maximum":1}}`],
    ["NAMESPACE_QUOTAS",        `{"Team":{}}`],
    ["NAMESPACE_QUOTAS",        `{"":{}}`],
    ["NAMESPACE_QUOTAS",        `{"*a":{}}`],
    ["API_TOKENS",              SECRET],
    ["API_TOKENS",              `{"name":"${SECRET}"}`],
    ["API_TOKENS",              `[{"name":"ci","sha256":"${SECRET}","role":"editor"}]`],
    ["API_TOKENS",              `[{"name":"ci","sha256":"${DIGEST.toUpperCase()}","role":"editor"}]`],
    ["API_TOKENS",              `[{"name":"ci","sha256":"${DIGEST}","role":"${SECRET}"}]`],
    ["API_TOKENS",              `[{"name":"ci","sha256":"${DIGEST}","role":"viewer","token":"${SECRET}"}]`],
  ];

  test.for(bad)("%s=%s is named, and not shown", ([variable, value]) => {
    const message = failureOf({ [variable]: value });
    expect(message).toContain(variable);
    expect(message).not.toContain(SECRET);
  });

  test("does not hide the others", () => {
    expect(failureOf({ START_LANE_WIDTH: "0", GC_MODE: "", NAMESPACE_QUOTAS: "{" })).toMatch(
      /START_LANE_WIDTH: .*; GC_MODE: .*; NAMESPACE_QUOTAS: must be JSON/,
    );
  });
});

describe("a quota", () => {
  const { quotas } = parseConfig({ NAMESPACE_QUOTAS: `{"team-a":{"maxRunning":2},"*":{"maxWorkspaces":9,"maxRunning":1}}` });

  test("is that of the namespace, else that of all others, else none", () => {
    expect(quotaOf(quotas, "team-a")).toEqual({ maxWorkspaces: null, maxRunning: 2 });
    expect(quotaOf(quotas, "team-b")).toEqual({ maxWorkspaces: 9, maxRunning: 1 });
    expect(quotaOf(quotas, "constructor")).toEqual({ maxWorkspaces: 9, maxRunning: 1 });
    expect(quotaOf({}, "team-b")).toEqual({ maxWorkspaces: null, maxRunning: null });
  });

  test("of what runs is known by namespace", () => {
    expect(runningLimitsOf({ quotas })).toEqual({ "team-a": 2, "*": 1 });
  });
});

function failureOf(environment: object): string {
  try {
    parseConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error("the environment was usable");
}
