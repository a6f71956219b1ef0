/** What is told of a day to whoever looks into a violation. */
import type { Conclusion } from "../../src/workspace-record.ts";

/** `subject`: a workspace's uid, a DO id, or nothing. */
export type Trace = (subject: string, text: string) => void;

export function describe({ status, failures, nextRetryTime, queuedTime, startId, brake, laneReleased }: Conclusion): string {
  const flags = [
    brake && "brakes",
    laneReleased && "lane released",
    queuedTime !== null && "queued",
    startId,
    nextRetryTime !== null && "retries",
  ];
  const [ready] = status.conditions;
  return `saved ${status.phase} ${ready?.reason} !${failures} ${ready?.message} (${flags.filter(Boolean).join(", ")})`;
}
