//! What the server takes, and what else the machine does, from `/proc`.

use std::fs;
use std::time::Instant;

use crate::Error;

/// Ticks of the processors up to now.
pub(crate) struct Machine {
    server: u32,
    at: Instant,
    /// Of all processes, of the server and of this program.
    ticks: [u64; 3],
}

impl Machine {
    pub(crate) fn now(server: u32) -> Result<Self, Error> {
        Ok(Self { server, at: Instant::now(), ticks: ticks(server)? })
    }

    /// What took the processors since.
    pub(crate) fn told(&self) -> Result<String, Error> {
        let now = ticks(self.server)?;
        let hundredths = self.at.elapsed().as_millis().max(10) / 10;
        let [all, server, own] = [0, 1, 2].map(|at: usize| {
            let ticks = now.get(at).zip(self.ticks.get(at));
            u128::from(ticks.map_or(0, |(now, then)| now.saturating_sub(*then))) * 100 / hundredths
        });
        let others = all.saturating_sub(server + own);
        Ok(format!(
            "Percent of one processor meanwhile: the server {server}, this program {own}, all others {others}; \
             load {}.",
            load()?
        ))
    }
}

/// A tick is a hundredth of a second.
fn ticks(server: u32) -> Result<[u64; 3], Error> {
    let all = fs::read_to_string("/proc/stat")?;
    let all = all.lines().next().ok_or("nothing in /proc/stat")?;
    let fields: Vec<u64> = all.split_whitespace().skip(1).flat_map(str::parse).collect();
    // user, nice, system, then idle and iowait, then irq and softirq; what a host took of a guest is no work here.
    let busy = [0, 1, 2, 5, 6].iter().filter_map(|at: &usize| fields.get(*at)).sum();
    Ok([busy, of(&server.to_string())?, of("self")?])
}

fn of(process: &str) -> Result<u64, Error> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, in parentheses, may have spaces.
    let (_, rest) = stat.rsplit_once(')').ok_or("no name in stat")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let at = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    Ok(at(11).zip(at(12)).map(|(user, system)| user + system).ok_or("no times in stat")?)
}

/// The load of the last minute.
pub(crate) fn load() -> Result<String, Error> {
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(load.split(' ').next().unwrap_or_default().to_owned())
}

/// What a process takes and took at most.
pub(crate) fn memory(pid: u32) -> Result<String, Error> {
    Ok(format!("{} MiB, at most {}", status(pid, "VmRSS:")?, status(pid, "VmHWM:")?))
}

/// What a process takes, in MiB.
pub(crate) fn resident(pid: u32) -> Result<u64, Error> {
    status(pid, "VmRSS:")
}

fn status(pid: u32, name: &str) -> Result<u64, Error> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with(name)).ok_or("no figures of memory")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(kilobytes >> 10)
}
