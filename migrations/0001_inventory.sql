CREATE TABLE `events` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`workspace_uid` text,
	`namespace` text,
	`name` text,
	`do_id` text,
	`time` integer NOT NULL,
	`type` text NOT NULL,
	`reason` text NOT NULL,
	`message` text NOT NULL,
	`actor` text
);
--> statement-breakpoint
CREATE INDEX `events_workspace` ON `events` (`namespace`,`name`,`id`);--> statement-breakpoint
CREATE INDEX `events_uid` ON `events` (`workspace_uid`,`id`);--> statement-breakpoint
CREATE INDEX `events_time` ON `events` (`time`);--> statement-breakpoint
CREATE TABLE `settings` (
	`id` integer PRIMARY KEY NOT NULL,
	`revision` integer NOT NULL,
	`paused` integer NOT NULL,
	`gc_mode` text,
	`allow_empty` integer NOT NULL,
	`lane_width` integer,
	`brake_released_until_time` integer
);
--> statement-breakpoint
CREATE TABLE `unclaimed` (
	`do_id` text PRIMARY KEY NOT NULL,
	`sandbox_id` text,
	`workspace_uid` text,
	`namespace` text,
	`name` text,
	`incarnation` integer,
	`state` text NOT NULL,
	`first_seen_time` integer NOT NULL,
	`last_seen_time` integer NOT NULL,
	`times_seen` integer NOT NULL,
	`started_time` integer,
	`protected` integer DEFAULT false NOT NULL,
	`destroy_request_time` integer,
	`destroy_attempts` integer DEFAULT 0 NOT NULL,
	`last_destroy_time` integer
);
--> statement-breakpoint
CREATE INDEX `unclaimed_workspace` ON `unclaimed` (`workspace_uid`);--> statement-breakpoint
ALTER TABLE `controller` ADD `brake_reason` text;--> statement-breakpoint
ALTER TABLE `controller` ADD `brake_message` text;--> statement-breakpoint
ALTER TABLE `controller` ADD `inventory` text;--> statement-breakpoint
ALTER TABLE `instances` ADD `running` integer DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE `instances` ADD `destroy_request_time` integer;--> statement-breakpoint
ALTER TABLE `instances` ADD `adopted` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `instances_running` ON `instances` (`namespace`) WHERE running = 1;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `wake_time` integer;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `reconcile_request_time` integer;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `idle_time` integer;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `start_id` text;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `observed` text;