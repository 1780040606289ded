//! The section `CPU`.

use super::text::Text;
use crate::kernel::ctx::Ctx;

pub(super) fn write(ctx: &mut Ctx<'_>, text: &mut Text) {
    let facts = ctx.node.process.facts();
    text.section("CPU");
    for (name, time) in [("used_cpu_sys", facts.cpu_system), ("used_cpu_user", facts.cpu_user)] {
        text.field(name, format_args!("{:.6}", time.as_secs_f64()));
    }
    // Nothing is ever forked.
    text.field("used_cpu_sys_children", "0.000000");
    text.field("used_cpu_user_children", "0.000000");
}
