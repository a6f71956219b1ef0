CREATE TABLE `backups` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_uid` text NOT NULL,
	`namespace` text NOT NULL,
	`name` text NOT NULL,
	`trigger` text NOT NULL,
	`state` text NOT NULL,
	`reason` text DEFAULT '' NOT NULL,
	`message` text DEFAULT '' NOT NULL,
	`directory` text NOT NULL,
	`requested_time` integer NOT NULL,
	`start_id` text,
	`generation` integer,
	`started_time` integer,
	`deadline_time` integer,
	`failures` integer DEFAULT 0 NOT NULL,
	`ended_time` integer,
	`object_id` text,
	`size_bytes` integer,
	`lost_time` integer,
	`workspace_gone_time` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `backups_active` ON `backups` (`workspace_uid`) WHERE state IN ('Requested', 'InProgress');--> statement-breakpoint
CREATE INDEX `backups_workspace` ON `backups` (`workspace_uid`,`started_time`);--> statement-breakpoint
CREATE INDEX `backups_good` ON `backups` (`workspace_uid`,`ended_time`) WHERE state = 'Completed';--> statement-breakpoint
CREATE INDEX `backups_name` ON `backups` (`namespace`,`name`,`requested_time`,`id`);--> statement-breakpoint
CREATE INDEX `backups_deleting` ON `backups` (`id`) WHERE state = 'Deleting';--> statement-breakpoint
CREATE UNIQUE INDEX `backups_object` ON `backups` (`object_id`) WHERE object_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `unclaimed_backups` (
	`object_id` text PRIMARY KEY NOT NULL,
	`uploaded_time` integer NOT NULL,
	`size_bytes` integer NOT NULL,
	`first_seen_time` integer NOT NULL,
	`last_seen_time` integer NOT NULL,
	`times_seen` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `controller` ADD `backup_sweep` text;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `final_backup` text;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `final_backup_deadline_time` integer;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `source_backup_id` text;