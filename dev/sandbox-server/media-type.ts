import { extname } from "node:path";

const TYPE_BY_EXTENSION: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".csv": "text/csv",
  ".gif": "image/gif",
  ".gz": "application/gzip",
  ".html": "text/html",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".js": "text/javascript",
  ".json": "application/json",
  ".md": "text/markdown",
  ".mjs": "text/javascript",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".sh": "application/x-sh",
  ".svg": "image/svg+xml",
  ".tar": "application/x-tar",
  ".ts": "application/typescript",
  ".wasm": "application/wasm",
  ".webp": "image/webp",
  ".xml": "application/xml",
  ".yaml": "application/yaml",
  ".yml": "application/yaml",
  ".zip": "application/zip",
};

export interface MediaType {
  readonly mimeType: string;
  readonly isBinary: boolean;
}

/** What a file is, judged by its name and, where that says nothing, by how it begins. */
export function mediaType(path: string, beginning: Buffer): MediaType {
  const known = TYPE_BY_EXTENSION[extname(path).toLowerCase()];
  const isBinary = known === undefined ? !isText(beginning) : !/^text\/|json|javascript|typescript|xml|yaml|x-sh/.test(known);
  return { mimeType: known ?? (isBinary ? "application/octet-stream" : "text/plain"), isBinary };
}

function isText(bytes: Buffer): boolean {
  if (bytes.includes(0)) return false;
  try {
    // As a stream: the last character may be cut in two.
    new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}
