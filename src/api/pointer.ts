/** What a schema found wrong, as errors with a pointer and without any value. */
import type { z } from "zod";
import type { FieldError } from "./problem.ts";

type Issue = z.core.$ZodIssue;

/** An answer names some mistakes; a body made of mistakes must not be mirrored whole. */
const MAX_ERRORS = 50;
const MAX_POINTER_LENGTH = 1024;

/** Where a part of the request is, in an error's pointer. */
export type RequestPart = "body" | "query" | "path";

export function toFieldErrors(issues: readonly Issue[], part: RequestPart): readonly FieldError[] {
  return limitErrors(issues.flatMap((issue) => describe(issue).map(({ path, detail }) => ({ pointer: locate(path, part), detail }))));
}

export function limitErrors(errors: readonly FieldError[]): readonly FieldError[] {
  return errors.slice(0, MAX_ERRORS);
}

/** RFC 6901. Where the pointer would be absurdly long, that of the closest parent which is not. */
export function toPointer(path: readonly PropertyKey[]): string {
  const pointer = path.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  return pointer.length <= MAX_POINTER_LENGTH ? pointer : toPointer(path.slice(0, -1));
}

function describe(issue: Issue): readonly { path: readonly PropertyKey[]; detail: string }[] {
  const { code, path, message } = issue;
  if (code === "unrecognized_keys") return issue.keys.map((key) => ({ path: [...path, key], detail: "is not a known field" }));
  if (code === "invalid_key") return issue.issues.map((ofName) => ({ path, detail: `the name ${ofName.message}` }));
  const isMissing = code === "invalid_type" && message.endsWith("received undefined");
  return [{ path, detail: isMissing ? "is required" : message }];
}

function locate(path: readonly PropertyKey[], part: RequestPart): string {
  return part === "body" ? toPointer(path) : `${part}${toPointer(path)}`;
}
