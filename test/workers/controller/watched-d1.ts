/** The D1 binding with everything that goes through it counted, and a point before and after each round trip. */
import type { FakeClock } from "./clock.ts";
import type { Process } from "./support.ts";

export interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
  readonly isWrite: boolean;
}

export function watchD1(d1: D1Database, clock: FakeClock, process: Process): D1Database {
  const inner = new WeakMap<object, { readonly statement: D1PreparedStatement; readonly text: Statement }>();

  async function roundTrip<T>(texts: readonly Statement[], call: () => Promise<T>): Promise<T> {
    const name = nameOf(texts.map(({ sql }) => sql));
    await process.point(`${name} before`);
    process.statements.push(...texts);
    const answer = await clock.busy(call());
    await process.point(`${name} after`);
    return answer;
  }

  function watch(statement: D1PreparedStatement, sql: string, bound: readonly unknown[]): D1PreparedStatement {
    const text: Statement = { sql, values: bound, isWrite: !/^\s*(select|explain)/i.test(sql) };
    const watched = {
      bind: (...values: unknown[]) => watch(statement.bind(...values), sql, values),
      run: () => roundTrip([text], () => statement.run()),
      all: () => roundTrip([text], () => statement.all()),
      raw: () => roundTrip([text], () => statement.raw()),
      first: (column: string) => roundTrip([text], () => statement.first(column)),
    } as unknown as D1PreparedStatement;
    inner.set(watched, { statement, text });
    return watched;
  }

  return {
    prepare: (sql: string) => watch(d1.prepare(sql), sql, []),
    batch: (statements: D1PreparedStatement[]) => {
      const known = statements.map((statement) => inner.get(statement));
      const parts = known.filter((part) => part !== undefined);
      return roundTrip(
        parts.map(({ text }) => text),
        () => d1.batch(parts.map(({ statement }) => statement)),
      );
    },
  } as unknown as D1Database;
}

/** What the round trip is for, from its tables and verbs. */
function nameOf(sqls: readonly string[]): string {
  const text = sqls.join(";").toLowerCase();
  if (/insert into "?start_lane/.test(text)) return "admit";
  if (text.includes('delete from "workspaces"')) return "forget";
  if (text.includes('update "workspaces"')) return "save";
  if (text.includes('set "inventory"')) return "record";
  if (text.includes('update "unclaimed"')) return "claim";
  if (text.includes('"controller"') && sqls.length === 1) return "lease";
  if (text.includes("start_lane")) return "load";
  return text.includes('from "workspaces"') ? "view" : "other";
}
