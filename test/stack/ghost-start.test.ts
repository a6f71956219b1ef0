import { describeManyAtOnce, START_DELAY, WINDOW_MS } from "./many-at-once.ts";

describeManyAtOnce("overlapping starts become ghosts", {
  startDelay: START_DELAY,
  ghostStart: { probability: 0.4, windowMs: WINDOW_MS, upAfterMs: 1000 },
});
