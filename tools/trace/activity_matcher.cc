#include "tools/trace/activity_matcher.h"

#include "eventheader/wire.h"

namespace trace {
namespace {

bool HasActivityAnd(eh::Opcode opcode, const nettrace::Event& event) {
  return event.labels->activity_id && event.opcode() == static_cast<std::uint8_t>(opcode);
}

}  // namespace

bool BeginsActivity(const nettrace::Event& event) {
  return HasActivityAnd(eh::Opcode::kActivityStart, event);
}

bool EndsActivity(const nettrace::Event& event) {
  return HasActivityAnd(eh::Opcode::kActivityStop, event);
}

}  // namespace trace
