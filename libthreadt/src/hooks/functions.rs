//! `__cyg_profile_func_enter` and `__cyg_profile_func_exit`, which a compiler calls at the beginning and the end of each function
//! with `-finstrument-functions`: also in functions that run before this library is relocated, in signal handlers and in vfork
//! children.

use core::ffi::c_void;

use spec::id;

use crate::first_use::is_chosen_function;
use crate::recorder::switch;
use crate::{clock, recorder};

type Code = *const c_void;

/// Defines such a hook: its event, its record kind, and when its time is read. The next function is libc's, which does nothing, or
/// that of another tool.
macro_rules! function_hook {
    ($symbol:ident $event:ident $kind:ident $now:ident) => {
        hook! {
            fn $symbol(function: Code, call_site: Code; _caller) -> () [$event $symbol empty] {
                if switch(id::$event).is_on() && is_chosen_function(function.addr()) {
                    recorder::put(&id::$kind, clock::$now(), [function as u64, call_site as u64, 0, 0, 0]);
                }
                // SAFETY: functions.tsv has the prototype.
                unsafe { jump_to_next!($symbol(function: Code, call_site: Code) -> ()) }
            }
        }
    };
}

function_hook! { __cyg_profile_func_enter FUNC_ENTER FUNC_ENTER_0 now_unfenced }
function_hook! { __cyg_profile_func_exit FUNC_LEAVE FUNC_LEAVE_0 now_unfenced }
