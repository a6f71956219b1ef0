import { describeManyAtOnce, START_DELAY } from "./many-at-once.ts";

describeManyAtOnce("admission is refused while more than six run", {
  startDelay: START_DELAY,
  refuseAdmission: { whileRunning: 6, times: 2 },
});
