/** The operator's settings: replaced whole, by compare-and-swap on their revision. */
import { eq, sql } from "drizzle-orm";
import type { ControllerSettings } from "../unclaimed.ts";
import type { Instant } from "../workspace.ts";
import type { Database } from "./db.ts";
import { recordEvent } from "./events.ts";
import { settings } from "./schema.ts";

export interface SettingsChange {
  /** Of the settings it was decided on; 0: there are none. */
  readonly revision: number;
  readonly settings: ControllerSettings;
  /** For the history: what changed. */
  readonly message: string;
  readonly actor: string;
  readonly now: Instant;
}

const ROW = 1;

/** False, and nothing written, where the settings are of another revision by now. */
export async function replaceSettings(db: Database, { revision, message, actor, now, ...change }: SettingsChange): Promise<boolean> {
  // Before the write: afterwards, another's write could not be told from this one.
  const isCurrent = sql`coalesce((SELECT ${settings.revision} FROM ${settings}), 0) = ${revision}`;
  const event = { type: "Normal", reason: "ControllerSettingsChanged", message } as const;
  const values = { ...change.settings, revision: revision + 1 };
  const [, written] = await db.batch([
    recordEvent(db, { actor }, event, now, isCurrent),
    db
      .insert(settings)
      .values({ id: ROW, ...values })
      .onConflictDoUpdate({ target: settings.id, set: values, setWhere: eq(settings.revision, revision) })
      .returning({ revision: settings.revision }),
  ]);
  return written.length === 1;
}
