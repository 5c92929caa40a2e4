//! What a piece of code is busy with, told by its name: the table by which a profile is put together.

/// A function on the stack, and the file that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) symbol: &'a str,
    pub(crate) file: &'a str,
}

/// What the kernel's functions are about, by the words that they begin with. The first line that fits counts.
const KERNEL: [(&str, &str); 4] = [
    (
        "kernel: network",
        "tcp_ __tcp ip_ __ip_ ipv4_ inet_ __inet sock_ __sock sk_ __sk_ skb_ __skb net_ __net napi_ __napi \
         process_backlog dev_ __dev loopback nf_ sys_send __sys_send sys_recv __sys_recv __x64_sys_send __x64_sys_recv \
         __x64_sys_accept release_sock lock_sock security_sock validate_xmit kfree_skb __alloc_skb __kfree_skb \
         consume_skb napi csum_ simple_copy_to_iter fib_ dst_ eth_",
    ),
    (
        "kernel: files and disk",
        "ext4_ __ext4 jbd2_ __jbd2 xfs_ btrfs_ iomap_ ovl_ vfs_fsync do_fsync __x64_sys_fdatasync __x64_sys_fsync \
         __x64_sys_pwrite64 __x64_sys_pread64 __x64_sys_fcntl fcntl_ posix_lock __posix_lock file_write __filemap \
         filemap_ folio_ __folio block_ __block generic_perform_write generic_file blk_ __blk bio_ __bio submit_bio \
         __submit_bio virtblk virtqueue_ vring_ vp_notify writeback_ wb_ write_cache_pages do_writepages mpage_ \
         find_get pagecache_ nvme_ scsi_ sd_ dd_ elv_ xas_ xa_ mark_buffer __find_get create_empty_buffers \
         start_this_handle locks_ fault_in_iov_iter",
    ),
    (
        "kernel: waiting and waking",
        "futex __futex do_futex __x64_sys_futex ep_ __ep_ do_epoll __x64_sys_epoll eventfd schedule __schedule \
         try_to_wake ttwu_ wake_ __wake hrtimer finish_task pick_next enqueue_ dequeue_ update_ select_task select_idle \
         switch_ __switch psi_ sched_ __x64_sys_sched set_next check_preempt wakeup_ context_switch prepare_to_wait \
         do_nanosleep tick_ reweight place_entity poll_idle autoremove pollwake",
    ),
    (
        "kernel: memory",
        "handle_mm __handle_mm do_anonymous clear_page do_user_addr exc_page asm_exc_page mmap_ do_mmap do_madvise \
         __x64_sys_m __x64_sys_brk do_brk zap_ unmap_ tlb_ flush_tlb mem_cgroup __mem_cgroup alloc_pages __alloc_pages \
         get_page_from free_pages vma_ lru_ rmqueue free_unref charge_memcg",
    ),
];

/// What the C library's functions are about.
const LIBRARY: [(&str, &str); 3] = [
    (
        "allocation",
        "malloc _int_malloc __libc_malloc free cfree _int_free realloc _int_realloc calloc __libc_calloc unlink_chunk \
         sysmalloc systrim tcache checked_request arena_ posix_memalign _int_memalign alloc_perturb __libc_free \
         __libc_realloc",
    ),
    ("copying and comparing bytes", "mem __mem str __str bcmp __bcmp"),
    ("clock, ids and log", "clock_ __clock __vdso getrandom"),
];

/// What functions of Rust are about, by the crates in their names: that which stands first in the name counts.
const CRATES: [(&str, &str); 7] = [
    (
        "tokio, hyper, axum and reqwest",
        "tokio hyper axum reqwest http httparse tower matchit mio:: futures want:: h2:: url:: percent_encoding bytes:: \
         socket2 parking_lot slab:: ipnet iri_string serde_urlencoded sync_wrapper pin_project mime:: idna base64",
    ),
    ("SQLite", "rusqlite libsqlite3 hashlink"),
    ("hashing", "sha2 sha1 hmac digest:: block_buffer cpufeatures siphasher core::hash::sip ahash hashbrown"),
    ("JSON", "serde itoa:: ryu:: zmij:: protocol::"),
    ("clock, ids and log", "jiff uuid tracing std::time std::sys::time rand chacha getrandom prometheus sharded_slab"),
    ("the bank's own code", "bank:: kassa_bank idempotency:: store::"),
    ("allocation", "__rust_alloc __rust_dealloc __rust_realloc __rdl_ __rustc:: alloc::alloc alloc::raw_vec"),
];

const SQLITE: &str = "SQLite";
const STANDARD: &str = "Rust's own library";
const KERNEL_REST: &str = "kernel: entry, exit and the rest";
const LIBRARY_REST: &str = "C library, the rest";
const UNKNOWN: &str = "unknown";

/// What a sample is about, of which the stack is given from the innermost function on.
///
/// In the kernel the innermost function that says something counts: a lock says nothing, its caller does. Outside of it the
/// innermost one is all that is certain, because programs keep no frame pointers.
pub(crate) fn of<'a>(stack: impl IntoIterator<Item = Frame<'a>>) -> &'static str {
    let mut area = None;
    for frame in stack {
        if !frame.is_kernel() {
            return area.unwrap_or_else(|| frame.area());
        }
        match listed(&KERNEL, |word| frame.symbol.starts_with(word)) {
            Some(found) => return found,
            None => area = Some(KERNEL_REST),
        }
    }
    area.unwrap_or(UNKNOWN)
}

fn listed(table: &[(&'static str, &str)], fits: impl Fn(&str) -> bool) -> Option<&'static str> {
    table.iter().find(|(_, words)| words.split_whitespace().any(&fits)).map(|(area, _)| *area)
}

impl Frame<'_> {
    fn is_kernel(&self) -> bool {
        // The kernel and its modules stand in brackets; so do parts that it maps into each program.
        self.file.starts_with('[') && !["[vdso]", "[unknown]", "[vsyscall]", "[heap]", "[stack]"].contains(&self.file)
    }

    /// What a function outside of the kernel is about.
    fn area(&self) -> &'static str {
        let Self { symbol, file } = *self;
        if symbol == "[unknown]" {
            return UNKNOWN;
        }
        if file == "[vdso]" || file.contains("libc.so") || file.contains("libc-") || file.contains("ld-linux") {
            return listed(&LIBRARY, |word| symbol.starts_with(word)).unwrap_or(LIBRARY_REST);
        }
        let first = CRATES
            .iter()
            .flat_map(|(area, words)| words.split_whitespace().filter_map(|word| Some((at(symbol, word)?, *area))));
        if let Some((_, area)) = first.min_by_key(|(place, _)| *place) {
            return area;
        }
        // The one library in the bank that is not written in Rust, by which its names have no path.
        if symbol.contains("::") || symbol.starts_with('<') || symbol.starts_with("_R") { STANDARD } else { SQLITE }
    }
}

/// Where a word begins a part of a path within a name.
fn at(symbol: &str, word: &str) -> Option<usize> {
    symbol.match_indices(word).map(|(place, _)| place).find(|place| {
        let before = symbol[..*place].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(stack: &[(&str, &str)]) -> &'static str {
        of(stack.iter().map(|(symbol, file)| Frame { symbol, file }))
    }

    const KERNEL_FILE: &str = "[kernel.kallsyms]";
    const BANK_FILE: &str = "/usr/bin/kassa-bank";

    #[test]
    fn in_the_kernel_the_innermost_function_that_says_something_counts() {
        let lock = ("_raw_spin_unlock_irqrestore", KERNEL_FILE);
        let below = [("do_syscall_64", KERNEL_FILE), ("__send", "/lib/libc.so.6"), ("sqlite3VdbeExec", BANK_FILE)];
        let with = |symbol: &'static str| area(&[&[lock, (symbol, KERNEL_FILE)], &below[..]].concat());
        assert_eq!(with("tcp_sendmsg_locked"), "kernel: network");
        assert_eq!(with("ext4_sync_file"), "kernel: files and disk");
        assert_eq!(with("futex_wake"), "kernel: waiting and waking");
        assert_eq!(with("something_else"), KERNEL_REST, "and never what called the kernel");
        assert_eq!(area(&[("ext4_map_blocks", "[ext4]")]), "kernel: files and disk");
        assert_eq!(area(&[]), UNKNOWN);
    }

    #[test]
    fn a_function_of_rust_is_about_what_stands_first_in_its_name() {
        for (symbol, wanted) in [
            ("<hyper::proto::h1::conn::Conn<I,B,T> as core::fmt::Debug>::fmt", "tokio, hyper, axum and reqwest"),
            ("core::ptr::drop_in_place<bank::payments::Claim>", "the bank's own code"),
            ("<protocol::payment::Payment as serde::ser::Serialize>::serialize", "JSON"),
            ("sha2::sha256::x86::digest_blocks", "hashing"),
            ("rusqlite::statement::Statement::execute", SQLITE),
            ("<bank::payments::Answer as serde::ser::Serialize>::serialize", "the bank's own code"),
            ("core::fmt::write", STANDARD),
            ("sqlite3VdbeExec", SQLITE),
            ("balance_nonroot", SQLITE),
            ("__rdl_alloc", "allocation"),
            ("[unknown]", UNKNOWN),
        ] {
            assert_eq!(area(&[(symbol, BANK_FILE)]), wanted, "{symbol}");
        }
        assert_eq!(area(&[("_int_malloc", "/usr/lib/x86_64-linux-gnu/libc.so.6")]), "allocation");
        assert_eq!(area(&[("__memmove_avx_unaligned_erms", "/lib/libc.so.6")]), "copying and comparing bytes");
        assert_eq!(area(&[("__vdso_clock_gettime", "[vdso]")]), "clock, ids and log");
    }
}
