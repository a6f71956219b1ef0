/** The least that a spec can say. */
import type { SpecSketch } from "./lives.ts";

export const PLAIN: SpecSketch = {
  mode: "Running",
  env: 1,
  idleSeconds: null,
  lifetimeSeconds: null,
  expiresInMs: null,
  paused: false,
  backup: null,
  finalBackup: "Skip",
  deadlineSeconds: 60,
  setup: false,
  source: null,
};
