/** Instants of a request body: RFC 3339 with any offset, as epoch milliseconds inside. */
import { z } from "@hono/zod-openapi";

export const instantText = z.iso
  .datetime({ offset: true })
  .transform((text) => Date.parse(text))
  .refine((time) => /^\d{4}-/.test(new Date(time).toISOString()), { error: "must lie in the years 0000 to 9999 in UTC" });
