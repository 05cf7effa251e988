//! Jobs, CronJobs and what their pods do on virtual nodes, in virtual time.

mod cleaning;
mod cron_jobs;
mod harness;
mod job_policies;
mod jobs;
mod virtual_nodes;
