/** Labels and annotations: the syntax and limits of Kubernetes. */
import { z } from "@hono/zod-openapi";

const MAX_LABELS = 64;
const MAX_ANNOTATIONS_BYTES = 32 * 1024;

const NAME = /^[A-Za-z0-9]([A-Za-z0-9\-_.]{0,61}[A-Za-z0-9])?$/;
const DNS_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const PREFIX_MAX_LENGTH = 253;

export const labelsSchema = z
  .record(qualifiedName(), z.string().refine(isLabelValue, { error: "must be empty or at most 63 letters, digits, '-', '_' and '.'" }))
  .refine((labels) => Object.keys(labels).length <= MAX_LABELS, { error: `must have at most ${MAX_LABELS} entries` });

export const annotationsSchema = z
  .record(qualifiedName(), z.string())
  .refine((annotations) => byteLength(annotations) <= MAX_ANNOTATIONS_BYTES, {
    error: `must have at most ${MAX_ANNOTATIONS_BYTES / 1024} KiB in all`,
  });

/** `[prefix/]name`, the prefix being a DNS name. */
export function isLabelKey(key: string): boolean {
  const parts = key.split("/");
  const name = parts.pop() ?? "";
  const [prefix] = parts;
  return NAME.test(name) && parts.length <= 1 && (prefix === undefined || isDnsName(prefix));
}

export function isLabelValue(value: string): boolean {
  return value === "" || NAME.test(value);
}

function qualifiedName() {
  return z.string().refine(isLabelKey, {
    error: "must be at most 63 letters, digits, '-', '_' and '.', optionally after a DNS prefix and '/'",
  });
}

function isDnsName(prefix: string): boolean {
  return prefix.length <= PREFIX_MAX_LENGTH && prefix.split(".").every((label) => DNS_LABEL.test(label));
}

function byteLength(entries: Readonly<Record<string, string>>): number {
  const encoder = new TextEncoder();
  return Object.entries(entries).reduce((sum, [key, value]) => sum + encoder.encode(key).length + encoder.encode(value).length, 0);
}
