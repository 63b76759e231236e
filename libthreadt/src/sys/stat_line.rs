//! The line that `/proc` has of a process or a thread (proc_pid_stat(5)).

/// The field with this number, from the third on. The program's name, field 2, is in parentheses and may contain any character.
pub fn stat_field(line: &[u8], number: usize) -> Option<&[u8]> {
    let after_name = line.iter().rposition(|&byte| byte == b')')? + 1;
    line.get(after_name..)?.split(|&byte| byte == b' ').filter(|field| !field.is_empty()).nth(number - 3)
}
