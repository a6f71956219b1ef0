/** How the container moves an archive to and from the bucket by itself, by presigned URL. */
import type { CommandResult, FakeDisk } from "./fake-disk.ts";

const TRANSFER = /^curl .* -(?<direction>[To]) '(?<path>[^']*)' '(?<url>[^']*)'$/;

/** Null where the command is not one of these. */
export async function transfer(command: string, disk: FakeDisk, bucket: R2Bucket): Promise<CommandResult | null> {
  const { direction, path = "", url = "" } = TRANSFER.exec(command)?.groups ?? {};
  if (direction === undefined) return null;
  const { pathname, searchParams } = new URL(url);
  if (!searchParams.has("X-Amz-Signature")) return { exitCode: 22, stdout: "", stderr: "The requested URL returned error: 403" };
  const key = pathname.split("/").slice(2).join("/");
  if (direction === "T") await bucket.put(key, disk.read(path));
  else disk.write(path, new Uint8Array((await (await bucket.get(key))?.arrayBuffer()) ?? []));
  return { exitCode: 0, stdout: "", stderr: "" };
}
