//! What the recorder and its readers take for granted of file systems.

/// On a server, or in a process (FUSE), by `f_type` of statfs(2): SMB2, CIFS, NFS, FUSE, 9p, Ceph, Lustre, AFS
/// (`include/uapi/linux/magic.h`, and Lustre's own headers).
const REMOTE: [u32; 8] =
    [0xfe53_4d42, 0xff53_4d42, 0x6969, 0x6573_5546, 0x0102_1997, 0x00c3_6400, 0x0bd0_0bd0, 0x5346_414f];
const OVERLAYFS: u32 = 0x794c_7630;

/// When less than a twentieth of a file system is free, or less than this if that is less, it counts as full.
const FREE_MIN: u64 = 1 << 30;
const FREE_DIVISOR: u64 = 20;

/// Whether the files of a file system, by its `f_type` of statfs(2), are in a server or in a process.
pub fn is_remote(f_type: u32) -> bool {
    REMOTE.contains(&f_type)
}

/// Whether the kernel refuses a read lease on a file, as it should, whenever somebody has the file open or mapped for writing. A remote
/// file system may know only the writers of this machine, and an overlay those of the layer below.
pub fn has_reliable_leases(f_type: u32) -> bool {
    !is_remote(f_type) && f_type != OVERLAYFS
}

/// How many bytes of a file system of `total` bytes recording leaves to others.
pub fn reserved_bytes(total: u64) -> u64 {
    (total / FREE_DIVISOR).min(FREE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_of_this_machine_are_reliable_and_others_are_not() {
        const EXT4: u32 = 0xef53;
        const NFS: u32 = 0x6969;
        assert_eq!([EXT4, NFS, OVERLAYFS].map(has_reliable_leases), [true, false, false]);
        assert_eq!([EXT4, NFS, OVERLAYFS].map(is_remote), [false, true, false]);
    }

    #[test]
    fn a_twentieth_or_a_gibibyte_stays_free() {
        assert_eq!([0, 100, 1 << 40].map(reserved_bytes), [0, 5, 1 << 30]);
    }
}
