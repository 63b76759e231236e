//! The names that programs give to their objects (`threadt_name`).

use super::analysis::Analysis;

impl Analysis {
    /// Takes the name that a program gives to the object at an address, which may not have been used yet.
    pub fn name_object(&mut self, process: u32, address: u64, name: u64) {
        self.object_names.insert((process, address), name);
        if let Some(object) = self.object_at(process, address) {
            self.objects[object as usize].name = name;
        }
    }

    /// The ID of the name that a process, or the one that it was forked from, has given to an address; 0 for none.
    pub fn object_name(&self, mut process: u32, address: u64) -> u64 {
        loop {
            if let Some(&name) = self.object_names.get(&(process, address)) {
                return name;
            }
            let Some(parent) = self.processes[process as usize].parent else { return 0 };
            process = parent;
        }
    }
}
