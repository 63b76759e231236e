//! The search of tables and functions.

use super::*;

#[test]
fn a_function_of_libc_is_found() {
    let found = any_definition(c"pthread_mutex_lock", None).unwrap();
    assert!(found.is_libc);
    assert_eq!(found.address, libc::pthread_mutex_lock as *const ());
    assert!(any_definition(c"no_such_function_anywhere", None).is_none());
}

#[test]
fn the_default_version_is_preferred() {
    // libc has two of it; the old one takes a pointer to a condition variable of another layout.
    assert_eq!(any_definition(c"pthread_cond_wait", None).unwrap().address, libc::pthread_cond_wait as *const ());
}

#[test]
fn a_version_is_found_by_its_name() {
    let address = |version| any_definition(c"pthread_cond_wait", Some(version)).map(|found| found.address);
    assert_eq!(address(c"GLIBC_2.3.2"), Some(libc::pthread_cond_wait as *const ()));
    assert!(address(c"GLIBC_2.2.5").is_some_and(|old| old != libc::pthread_cond_wait as *const ()));
    assert_eq!(address(c"GLIBC_2.3.3"), None);
}

#[test]
fn tables_are_relocated_once() {
    // As usual, linked above its place, as linked, and as a small and a large object under valgrind.
    for (link, base) in [(0, 0x7f00_0000_0000), (0x7f55_0000_0000, 0_usize.wrapping_sub(0x1_0000_0000)), (0x40_0000, 0)]
        .into_iter()
        .chain([(0, 0x400_0000), (0, 0x10_8000)])
    {
        let place = base.wrapping_add(link);
        assert_eq!(relocated(place + 0x500, base, place + 0x80_0000), place + 0x500, "{base:#x}");
        assert_eq!(relocated(link + 0x500, base, place + 0x80_0000), place + 0x500, "{base:#x}");
    }
}

#[test]
fn code_is_found_whatever_address_its_object_was_linked_for() {
    let as_linked = LinkMap::at(0, 0x7000_3000);
    let usual = LinkMap::at(0x5000_0000, 0x5000_3000);
    let linked_above = LinkMap::at(0x9000_0000_usize.wrapping_sub(0x7000_0000_0000_0000), 0x9000_3000);
    let objects = [&linked_above, &as_linked, &usual];
    for (address, expected) in [(0x5000_1000, &usual), (0x7000_1000, &as_linked), (0x9000_1000, &linked_above)] {
        let found = with_code_at(address, objects.into_iter()).map(ptr::from_ref);
        assert_eq!(found, Some(ptr::from_ref(expected)), "{address:#x}");
    }
}

#[test]
fn the_vdso_is_searched() {
    assert!(any_definition(c"__vdso_clock_gettime", None).is_some());
}
