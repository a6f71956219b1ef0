CREATE TABLE `controller` (
	`id` integer PRIMARY KEY NOT NULL,
	`holder` text NOT NULL,
	`epoch` integer NOT NULL,
	`expires_time` integer NOT NULL,
	`resync_time` integer NOT NULL,
	`last_sweep_time` integer,
	`brake_until_time` integer,
	`brake_failures` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `instances` (
	`do_id` text PRIMARY KEY NOT NULL,
	`sandbox_id` text NOT NULL,
	`workspace_uid` text NOT NULL,
	`namespace` text NOT NULL,
	`name` text NOT NULL,
	`incarnation` integer NOT NULL,
	`admitted_time` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `instances_workspace` ON `instances` (`workspace_uid`,`incarnation`);--> statement-breakpoint
CREATE TABLE `sequence` (
	`id` integer PRIMARY KEY NOT NULL,
	`value` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `start_lane` (
	`slot` integer PRIMARY KEY NOT NULL,
	`start_id` text NOT NULL,
	`workspace_uid` text NOT NULL,
	`queued_time` integer NOT NULL,
	`admitted_time` integer NOT NULL,
	`deadline_time` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `start_lane_workspace` ON `start_lane` (`workspace_uid`);--> statement-breakpoint
CREATE TABLE `workspaces` (
	`uid` text PRIMARY KEY NOT NULL,
	`namespace` text NOT NULL,
	`name` text NOT NULL,
	`spec` text NOT NULL,
	`labels` text NOT NULL,
	`annotations` text NOT NULL,
	`generation` integer NOT NULL,
	`revision` integer NOT NULL,
	`creation_time` integer NOT NULL,
	`deletion_time` integer,
	`resource_version` integer NOT NULL,
	`next_reconcile_time` integer,
	`status` text NOT NULL,
	`incarnation` integer DEFAULT 0 NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`next_retry_time` integer,
	`ready_time` integer,
	`queued_time` integer,
	`unreachable_time` integer,
	`resync_phase` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `workspaces_name` ON `workspaces` (`namespace`,`name`);--> statement-breakpoint
CREATE INDEX `workspaces_due` ON `workspaces` (`next_reconcile_time`) WHERE next_reconcile_time IS NOT NULL;--> statement-breakpoint
CREATE INDEX `workspaces_queued` ON `workspaces` (`queued_time`) WHERE queued_time IS NOT NULL;--> statement-breakpoint
CREATE INDEX `workspaces_resync` ON `workspaces` (`resync_phase`,`uid`);