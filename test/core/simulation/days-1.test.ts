import { daysHold } from "./days.ts";

daysHold([
  { from: 1, count: 70, workspaces: 100 },
  { from: 141, count: 7, workspaces: 500 },
]);
