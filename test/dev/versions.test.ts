/** Numbers that are written in two places and have to be the same. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { unstable_readConfig } from "wrangler";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const manifest = JSON.parse(read("package.json")) as Record<"dependencies" | "devDependencies", Record<string, string>>;

/** The part of a wrangler configuration that the product's and the developer's have to share. */
function configuration(path: string) {
  const { compatibility_date, compatibility_flags, triggers } = unstable_readConfig({ config: path });
  return { compatibility_date, compatibility_flags, triggers };
}

test("the image is of the SDK's version", () => {
  expect(read("Dockerfile")).toContain(`cloudflare/sandbox:${manifest.dependencies["@cloudflare/sandbox"]}\n`);
});

test("the sandbox server speaks the SDK's version of capnweb", () => {
  const sdk = JSON.parse(read("node_modules/@cloudflare/sandbox/package.json")) as { dependencies: Record<string, string> };
  expect(sdk.dependencies["capnweb"]?.replace(/^[^\d]/, "")).toBe(manifest.devDependencies["capnweb"]);
});

test("every dependency is pinned exactly", () => {
  const ranges = Object.values({ ...manifest.dependencies, ...manifest.devDependencies });
  expect(ranges.filter((range) => !/^\d+\.\d+\.\d+$/.test(range))).toEqual([]);
});

test("a developer's Worker runs as the product's does", () => {
  expect(configuration("dev/wrangler.jsonc")).toEqual(configuration("wrangler.jsonc"));
});
