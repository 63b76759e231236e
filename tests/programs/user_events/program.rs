//! Makes calls of the crate `threadt_events`.

use threadt_events::Name;

static WORK: Name = Name::new("work");
static LOCK: std::sync::Mutex<u32> = std::sync::Mutex::new(1);

fn main() {
    Name::new(&format!("lock {}", 7)).of_object(&LOCK);
    {
        let _span = WORK.span();
        Name::new("depth").counter(-3);
    }
    WORK.mark(5);
    threadt_events::event(7, [1, -2, 3, 4, i64::MIN]);
    threadt_events::event_entry(8, [1, 0, 0, 0, 0]);
    threadt_events::event_return(8, [0; 5]);
    threadt_events::event(90, [1; 5]);
    println!("{}", LOCK.lock().unwrap());
}
