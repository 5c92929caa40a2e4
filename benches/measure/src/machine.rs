//! What the system tells: processor time, memory, the disk's flushes, and how long a sync takes.

use anyhow::{Context, Result};
use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// A tick of processor time in `/proc`, which Linux shows in hundredths of a second on every platform.
const TICK: Duration = Duration::from_millis(10);
/// Syncs that are timed.
const SYNCS: usize = 300;

/// Processor time of a process and all its children, user and system.
///
/// Children that have ended are in what their parent waited for, so nothing is lost when one goes: the sum only grows.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let mut ticks = 0;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(found) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may have gone since it was listed; then its time is with its parent.
        let Ok(text) = fs::read_to_string(format!("/proc/{found}/stat")) else { continue };
        if let Some(stat) = Stat::parse(&text)
            && (found == pid || stat.parent == pid)
        {
            ticks += stat.ticks;
        }
    }
    Ok(TICK * ticks)
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// User and system time, its own and that of children that ended.
    ticks: u32,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name may hold anything, so what follows is counted from its end.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().map(|ticks| ticks.parse::<u32>().ok()).sum::<Option<u32>>()?;
        Some(Self { parent: fields.get(1)?.parse().ok()?, ticks })
    }
}

/// Processor time that anybody has taken on all cores, what a host took away included.
pub fn busy_time() -> Result<Duration> {
    let text = fs::read_to_string("/proc/stat")?;
    let ticks = text.lines().next().and_then(busy_ticks).context("/proc/stat has no times")?;
    Ok(TICK * ticks)
}

/// User, nice, system, interrupts and steal; not idle and not waiting for the disk, which are the fourth and the fifth.
fn busy_ticks(line: &str) -> Option<u32> {
    let fields: Vec<&str> = line.strip_prefix("cpu ")?.split_ascii_whitespace().take(8).collect();
    let idle = 3..5;
    let busy = fields.iter().enumerate().filter(|(place, _)| !idle.contains(place));
    busy.map(|(_, ticks)| ticks.parse::<u32>().ok()).sum()
}

/// The cores that this process may use.
pub fn cores() -> Result<f64> {
    Ok(std::thread::available_parallelism()?.get() as f64)
}

/// What a process has in memory, in KiB.
pub fn resident_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    line.trim().trim_end_matches("kB").trim().parse().context("VmRSS is no number")
}

/// The disk that a folder is on.
pub struct Disk {
    stat: PathBuf,
}

impl Disk {
    /// Finds it in the system's own list.
    ///
    /// # Errors
    /// The folder is not there.
    pub fn of(folder: &Path) -> Result<Self> {
        let device = fs::metadata(folder)?.dev();
        // As the C library packs a device's two numbers.
        let major = ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff);
        let minor = (device & 0xff) | ((device >> 12) & !0xff);
        Ok(Self { stat: format!("/sys/dev/block/{major}:{minor}/stat").into() })
    }

    /// Flushes of its cache since the start; none where the system doesn't count them.
    pub fn flushes(&self) -> Option<u64> {
        fs::read_to_string(&self.stat).ok()?.split_ascii_whitespace().nth(15)?.parse().ok()
    }
}

/// What is free for us on the disk that a folder is on, in bytes.
///
/// # Errors
/// The folder is not there.
pub fn free_bytes(folder: &Path) -> Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The kind of file system that a folder is on, as the system names it.
pub fn file_system(folder: &Path) -> Result<String> {
    let folder = folder.canonicalize()?;
    let mounts = fs::read_to_string("/proc/mounts")?;
    let kind = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .filter(|(mounted, _)| folder.starts_with(mounted))
        .max_by_key(|(mounted, _)| mounted.len());
    Ok(kind.context("the folder is on no file system")?.1.to_owned())
}

/// The median time of a write of 4 KiB at the end of a file with its `fdatasync`.
pub fn sync_time(folder: &Path) -> Result<Duration> {
    let path = folder.join("sync");
    let mut file = File::create(&path)?;
    // Within the file's length, as in a write-ahead log that is used again.
    file.write_all(&vec![0; 4_096 * SYNCS])?;
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let start = Instant::now();
        file.write_all(&[1; 4_096])?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    drop(file);
    fs::remove_file(&path)?;
    times.sort_unstable();
    Ok(times[SYNCS / 2])
}

/// The machine in general terms.
pub fn describe(folder: &Path, sync: Duration) -> Result<String> {
    let cores = std::thread::available_parallelism()?;
    let memory = fs::read_to_string("/proc/meminfo")?;
    let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")).context("no MemTotal")?;
    let gib = memory.trim().trim_end_matches("kB").trim().parse::<u64>()?.div_ceil(1 << 20);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let kernel: Vec<&str> = release.trim().split('.').take(2).collect();
    let virtual_disk = if Path::new("/sys/block/vda").exists() { "a virtual disk" } else { "a disk" };
    Ok(format!(
        "{cores} cores, {gib} GiB of memory, {virtual_disk} with {}, Linux {}; a write of 4 KiB with `fdatasync` takes {:.2} ms",
        file_system(folder)?,
        kernel.join("."),
        sync.as_secs_f64() * 1e3,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_is_found_behind_any_name() {
        let text = "7 (a) b (c)) S 3 7 7 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 1 0 5";
        assert_eq!(Stat::parse(text), Some(Stat { parent: 3, ticks: 124 }));
        assert_eq!(Stat::parse("7 (a) S 3"), None);
    }

    #[test]
    fn waiting_is_not_busy() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 1000 8 16 32 1000 0"), Some(63));
        assert_eq!(busy_ticks("cpu0 1 2 4"), None);
    }

    #[test]
    fn a_disk_has_some_bytes_free() {
        let free = free_bytes(&std::env::temp_dir()).unwrap();
        assert!((1 << 20..1 << 60).contains(&free), "{free}");
        assert!(free_bytes(Path::new("/no/such/folder")).is_err());
    }

    #[test]
    fn a_process_has_time_and_memory() {
        assert!(cpu_time(std::process::id()).unwrap() <= busy_time().unwrap());
        assert!(resident_kib(std::process::id()).unwrap() > 100);
    }
}
