import { describeManyAtOnce, START_DELAY, WINDOW_MS } from "./many-at-once.ts";

describeManyAtOnce("overlapping starts are killed", { startDelay: START_DELAY, overlapKill: { probability: 0.4, windowMs: WINDOW_MS } });
