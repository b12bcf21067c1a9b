#include "tools/nettrace/import/ctf/layout.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libnettrace-writer/core/traceevent.h"
#include "nettrace/format.h"
#include "tools/nettrace/import/ctf/tsdl_lexer.h"

namespace tools::importing::ctf {
namespace {

// The parts of packets and events, in the order in which they are decoded. Each part is described
// by one struct of the metadata.
enum class Root : std::uint8_t {
  kPacketHeader,
  kPacketContext,
  kEventHeader,
  kStreamEventContext,
  kEventContext,
  kEventFields,
  kCount
};

constexpr std::string_view kRootPaths[] = {"trace.packet.header", "stream.packet.context",
                                           "stream.event.header", "stream.event.context",
                                           "event.context",       "event.fields"};

std::string WithoutMark(const std::string& name) {
  return name.size() > 1 && name[0] == '_' ? name.substr(1) : name;
}

std::uint64_t AddBits(std::uint64_t one, std::uint64_t other) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 62;
  return std::min(kMax, one + other);
}

std::uint64_t MultiplyBits(std::uint64_t bits, std::uint64_t count) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 62;
  return count != 0 && bits > kMax / count ? kMax : bits * count;
}

bool IsBool(const Type& type) {
  if (type.element->size != 8 || type.ranges.size() != 2) return false;
  const auto is = [](const EnumRange& range, std::string_view name, std::uint64_t number) {
    return range.name == name && range.low == number && range.high == number;
  };
  return is(type.ranges[0], "false", 0) && is(type.ranges[1], "true", 1);
}

bool IsNumber(const Node& node) { return node.kind == Kind::kInteger || node.kind == Kind::kEnum; }

Node* MemberNamed(Node* node, std::string_view name) {
  const auto found = std::find_if(node->children.begin(), node->children.end(),
                                  [&](const Node& child) { return child.name == name; });
  return found == node->children.end() ? nullptr : &*found;
}

class Compiler {
 public:
  explicit Compiler(const Metadata& metadata) : metadata_(metadata) {}

  absl::StatusOr<Layout> Run();

 private:
  struct Frame {
    const Type* type;  // a struct or variant whose members are being compiled
    Node* node;
  };

  void Fail(std::size_t line, std::string_view why) {
    if (status_.ok()) status_ = ErrorAt(line, why);
  }
  void CompileStream(const StreamDeclaration& declaration, StreamClass* stream);
  void CompileEvent(const EventDeclaration& declaration, EventClass* event);
  void CompileRoot(Root root, const Type* type, std::optional<Node>* out);
  void Compile(const Type& type, Node* node);
  void CompileInteger(const Type& type, Node* node);
  void CompileMembers(const Type& type, Node* node);
  void CompileElement(const Type& type, Node* node);
  void CompileTags(const Type& type, const Node& tag, Node* node);
  // Returns the integer field that has the length of the sequence `type`, or the tag of the variant
  // `type`, and sets found_in_ and is_sibling_. Returns null and sets an error if there is no such
  // field.
  Node* Resolve(const Type& type);
  Node* Follow(Node* node, const Type* type, const std::vector<std::string>& path,
               std::size_t begin);
  Node* KeepValue(Node* number, Root root, std::size_t line);
  void HideLength(Node* length, std::string_view name) const;

  void SetHeaderRoles(Root root, Node* node);
  void SetContextRoles(Node* node);
  void SetPerfRoles(Node* fields);
  bool IsOurContext(const Node& context) const;

  const Metadata& metadata_;
  absl::Status status_;
  Layout layout_;
  std::vector<Frame> frames_;  // structs and variants around the current type; innermost last
  Root root_ = Root::kPacketHeader;
  Node* roots_[static_cast<std::size_t>(Root::kCount)] = {};
  const Type* root_types_[static_cast<std::size_t>(Root::kCount)] = {};
  Root found_in_ = Root::kPacketHeader;  // root of the last result of Resolve
  bool is_sibling_ = false;              // whether that result is a member of the innermost struct
  std::size_t nodes_ = 0;
  int arrays_ = 0;
  bool is_perf_ = false;
  std::string default_provider_;
};

void Compiler::CompileInteger(const Type& type, Node* node) {
  node->size = static_cast<std::uint8_t>(type.size);
  node->align = type.align;
  node->is_signed = type.is_signed;
  node->is_text = type.is_text;
  node->is_hex = type.is_hex;
  const ByteOrder order =
      type.byte_order == ByteOrder::kNative ? metadata_.byte_order : type.byte_order;
  node->is_big = order == ByteOrder::kBig;
  node->min_bits = type.size;
  if (type.clock.empty()) return;
  const auto clock = std::find_if(metadata_.clocks.begin(), metadata_.clocks.end(),
                                  [&](const Clock& one) { return one.name == type.clock; });
  if (clock == metadata_.clocks.end()) {
    return Fail(type.line, absl::StrCat("the clock '", type.clock, "' is not declared"));
  }
  node->clock = static_cast<std::int32_t>(clock - metadata_.clocks.begin());
}

void Compiler::Compile(const Type& type, Node* node) {
  if (++nodes_ > kMaxNodes) {
    return Fail(type.line, absl::StrCat("the trace has more than ", kMaxNodes, " fields"));
  }
  if (!status_.ok()) return;
  node->kind = type.kind;
  switch (type.kind) {
    case Kind::kInteger:
    case Kind::kFloat:
      return CompileInteger(type, node);
    case Kind::kEnum:
      CompileInteger(*type.element, node);
      node->ranges = &type.ranges;
      node->is_bool = IsBool(type);
      node->is_text = false;
      return;
    case Kind::kString:
      node->align = type.align;
      node->min_bits = 8;
      return;
    case Kind::kStruct:
    case Kind::kVariant:
      return CompileMembers(type, node);
    case Kind::kArray:
    case Kind::kSequence:
      return CompileElement(type, node);
  }
}

void Compiler::CompileMembers(const Type& type, Node* node) {
  const bool is_struct = type.kind == Kind::kStruct;
  if (!is_struct) {
    Node* const tag = Resolve(type);
    if (tag == nullptr) return;
    if (tag->kind != Kind::kEnum) return Fail(type.line, "the tag of a variant is not an enum");
    node->source = KeepValue(tag, found_in_, type.line)->slot;
    node->in_array = arrays_ > 0;
    CompileTags(type, *tag, node);
  }
  if (nodes_ + type.members.size() > kMaxNodes) {
    return Fail(type.line, absl::StrCat("the trace has more than ", kMaxNodes, " fields"));
  }
  node->align = is_struct ? type.align : 1;
  // Reserves space, so that pointers to children stay valid while further children are added.
  node->children.reserve(type.members.size());
  frames_.push_back({&type, node});
  for (const Member& member : type.members) {
    Node* const child = &node->children.emplace_back();
    child->name = WithoutMark(member.name);
    Compile(*member.type, child);
    if (!status_.ok()) return;
    if (is_struct) {
      node->align = std::max(node->align, child->align);
      node->min_bits = AddBits(node->min_bits, child->min_bits);
    }
  }
  frames_.pop_back();
}

void Compiler::CompileTags(const Type& type, const Node& tag, Node* node) {
  node->tag_is_signed = tag.is_signed;
  absl::flat_hash_map<std::string_view, std::uint32_t> options;
  for (std::size_t i = 0; i < type.members.size(); ++i) {
    options.try_emplace(type.members[i].name, static_cast<std::uint32_t>(i));
  }
  for (const EnumRange& range : *tag.ranges) {
    auto option = options.find(range.name);
    // LTTng may prefix the names of options with '_' but not the names in the enum of the tag, or
    // the reverse.
    if (option == options.end()) option = options.find("_" + range.name);
    if (option == options.end()) option = options.find(WithoutMark(range.name));
    if (option != options.end()) node->tags.push_back({range.low, range.high, option->second});
  }
  nodes_ += node->tags.size();
  if (node->tags.size() > kMaxTagRanges) {
    Fail(type.line, absl::StrCat("the tag of a variant has more than ", kMaxTagRanges, " ranges"));
  }
}

void Compiler::CompileElement(const Type& type, Node* node) {
  Node* length = nullptr;
  if (type.kind == Kind::kSequence) {
    length = Resolve(type);
    if (length == nullptr) return;
    if (length->kind != Kind::kInteger || length->is_signed) {
      return Fail(type.line, "the length of a sequence is not an unsigned integer");
    }
    node->source = KeepValue(length, found_in_, type.line)->slot;
    HideLength(length, node->name);
  }
  ++arrays_;
  node->children.emplace_back();
  Compile(*type.element, &node->children.back());
  --arrays_;
  const Node& element = node->children.back();
  node->align = element.align;
  node->count = type.count;
  node->is_text = element.kind == Kind::kInteger && element.is_text && element.size == 8;
  if (type.kind != Kind::kArray) return;
  node->min_bits = MultiplyBits(element.min_bits, type.count);
  const bool is_number = element.kind == Kind::kFloat || IsNumber(element);
  node->is_fixed = is_number && !node->is_text && type.count > 0 && type.count <= 65535 &&
                   type.count * 8 <= nettrace::internal::traceevent::kMaxFixedArrayBytes;
}

// Hides the length of a sequence if it is in the same struct and named after the sequence. It would
// be a field without new information, because the array of the NetTrace event has a length.
void Compiler::HideLength(Node* length, std::string_view name) const {
  if (!is_sibling_) return;
  const std::string_view length_name = length->name;
  for (const std::string_view end : {"_length", "_len", "_size"}) {
    if (!length_name.ends_with(end)) continue;
    std::string_view rest = length_name.substr(0, length_name.size() - end.size());
    if (rest.starts_with('_')) rest.remove_prefix(1);
    if (rest == name || absl::StrCat("_", std::string(rest)) == name) length->is_hidden = true;
  }
}

Node* Compiler::Follow(Node* node, const Type* type, const std::vector<std::string>& path,
                       std::size_t begin) {
  for (std::size_t i = begin; i < path.size(); ++i) {
    if (type->kind != Kind::kStruct && type->kind != Kind::kVariant) return nullptr;
    // Considers only members that are already compiled. Later members cannot be referred to,
    // because they are decoded later.
    std::size_t place = std::min(type->members.size(), node->children.size());
    while (place > 0 && type->members[place - 1].name != path[i]) --place;
    if (place == 0) return nullptr;
    node = &node->children[place - 1];
    type = type->members[place - 1].type;
  }
  return node;
}

Node* Compiler::Resolve(const Type& type) {
  const std::string path = absl::StrJoin(type.reference, ".");
  is_sibling_ = false;
  Node* found = nullptr;
  for (std::size_t i = 0; found == nullptr && i <= static_cast<std::size_t>(root_); ++i) {
    const std::string prefix = absl::StrCat(std::string(kRootPaths[i]), ".");
    if (!path.starts_with(prefix) || roots_[i] == nullptr) continue;
    const auto parts = static_cast<std::size_t>(std::count(prefix.begin(), prefix.end(), '.'));
    found_in_ = static_cast<Root>(i);
    found = Follow(roots_[i], root_types_[i], type.reference, parts);
  }
  for (auto frame = frames_.rbegin(); found == nullptr && frame != frames_.rend(); ++frame) {
    found_in_ = root_;
    found = Follow(frame->node, frame->type, type.reference, 0);
    is_sibling_ = found != nullptr && frame == frames_.rbegin() && type.reference.size() == 1;
  }
  for (auto i = static_cast<int>(root_) - 1; found == nullptr && i >= 0; --i) {
    if (roots_[i] == nullptr) continue;
    found_in_ = static_cast<Root>(i);
    found = Follow(roots_[i], root_types_[i], type.reference, 0);
  }
  if (found == nullptr || !IsNumber(*found)) {
    Fail(type.line,
         absl::StrCat("'", path.substr(0, 200), "', a length or a variant's tag, ",
                      found == nullptr ? "is not declared before its use" : "is not an integer"));
    return nullptr;
  }
  return found;
}

Node* Compiler::KeepValue(Node* number, Root root, std::size_t line) {
  if (number->slot != kNoSlot) return number;
  if (root <= Root::kEventHeader) {
    if (layout_.stream_slots == kMaxStreamSlots) {
      Fail(line, absl::StrCat("the packet headers, packet contexts and event headers of the trace "
                              "have too many fields that are the length of a sequence or the tag "
                              "of a variant; an import accepts at most ",
                              kMaxStreamSlots));
    }
    number->slot = static_cast<std::uint32_t>(layout_.stream_slots++) | kStreamSlot;
  } else {
    number->slot = static_cast<std::uint32_t>(layout_.event_slots++);
  }
  return number;
}

void Compiler::CompileRoot(Root root, const Type* type, std::optional<Node>* out) {
  const auto place = static_cast<std::size_t>(root);
  roots_[place] = nullptr;
  root_types_[place] = type;
  if (type == nullptr || !status_.ok()) return;
  root_ = root;
  frames_.clear();
  arrays_ = 0;
  roots_[place] = &out->emplace();
  Compile(*type, roots_[place]);
}

void Compiler::SetHeaderRoles(Root root, Node* node) {
  static const auto* const kRoles =
      new absl::flat_hash_map<std::string_view, Role>{{"magic", Role::kMagic},
                                                      {"stream_id", Role::kStreamId},
                                                      {"timestamp_begin", Role::kTimestampBegin},
                                                      {"timestamp_end", Role::kTimestampEnd},
                                                      {"content_size", Role::kContentSize},
                                                      {"packet_size", Role::kPacketSize},
                                                      {"packet_seq_num", Role::kPacketNumber},
                                                      {"events_discarded", Role::kDiscarded},
                                                      {"cpu_id", Role::kPacketCpu}};
  for (Node& child : node->children) {
    if (root == Root::kEventHeader) {
      if (child.kind == Kind::kStruct || child.kind == Kind::kVariant) {
        SetHeaderRoles(root, &child);
      } else if (IsNumber(child) && child.name == "id") {
        child.role = Role::kId;
      } else if (IsNumber(child) && (child.name == "timestamp" || child.clock >= 0)) {
        child.role = Role::kTimestamp;
      }
      continue;
    }
    if (root == Root::kPacketHeader && child.name == "uuid" && child.kind == Kind::kArray &&
        child.count == 16 && child.children[0].size == 8) {
      child.children[0].role = Role::kUuidByte;
    }
    const auto role = kRoles->find(child.name);
    if (role != kRoles->end() && IsNumber(child)) child.role = role->second;
  }
}

bool Compiler::IsOurContext(const Node& context) const {
  const auto has = [&](std::string_view name, Kind kind) {
    return std::any_of(context.children.begin(), context.children.end(),
                       [&](const Node& child) { return child.name == name && child.kind == kind; });
  };
  return has("keywords", Kind::kInteger) && has("level", Kind::kInteger) &&
         has("activity_id", Kind::kString) && has("labels", Kind::kSequence) &&
         has("stack", Kind::kSequence);
}

void Compiler::SetContextRoles(Node* context) {
  const auto set = [&](std::string_view name, Role role) {
    Node* const member = MemberNamed(context, name);
    if (member == nullptr || member->role != Role::kNone) return false;
    const bool wants_text = role == Role::kProcess || role == Role::kThread ||
                            (role >= Role::kActivity && role <= Role::kSpanId);
    const bool is_text = member->kind == Kind::kString || member->is_text;
    if (wants_text ? !is_text : member->kind != Kind::kInteger) return false;
    member->role = role;
    member->is_hidden = true;
    return true;
  };
  if (!set("pid", Role::kPid)) set("vpid", Role::kPid);
  if (!set("tid", Role::kTid)) set("vtid", Role::kTid);
  const bool is_ours = IsOurContext(*context);
  if (!is_ours) {
    set("procname", Role::kThread);
    set("cpu_id", Role::kCpu);
    return;
  }
  layout_.is_ours = true;
  if (!set("process", Role::kProcess)) set("procname", Role::kProcess);
  set("thread", Role::kThread);
  set("level", Role::kLevel);
  set("opcode", Role::kOpcode);
  set("version", Role::kVersion);
  set("keywords", Role::kKeywords);
  set("activity_id", Role::kActivity);
  set("related_activity_id", Role::kRelatedActivity);
  set("trace_id", Role::kTraceId);
  set("span_id", Role::kSpanId);
  Node* const labels = MemberNamed(context, "labels");
  Node* const label = &labels->children[0];
  if (label->kind == Kind::kStruct && label->children.size() == 2 &&
      label->children[0].kind == Kind::kString && label->children[1].kind == Kind::kString) {
    label->children[0].role = Role::kLabelName;
    label->children[1].role = Role::kLabelValue;
    labels->is_hidden = true;
  }
  Node* const stack = MemberNamed(context, "stack");
  if (stack->children[0].kind == Kind::kInteger) {
    stack->children[0].role = Role::kFrame;
    stack->is_hidden = true;
  }
}

// Sets the roles of the fields in which `perf data convert` writes the process, thread and call
// chain of an event.
void Compiler::SetPerfRoles(Node* fields) {
  for (Node& member : fields->children) {
    if (member.kind == Kind::kInteger && member.name == "perf_pid") {
      member.role = Role::kPid;
    } else if (member.kind == Kind::kInteger && member.name == "perf_tid") {
      member.role = Role::kTid;
    } else if (member.kind == Kind::kSequence && member.name == "perf_callchain" &&
               member.children[0].kind == Kind::kInteger) {
      member.children[0].role = Role::kFrame;
    } else {
      continue;
    }
    member.is_hidden = true;
  }
}

// Converts a log level of LTTng to a level from 1 (critical) to 5 (verbose). In LTTng, 0 to 6 are
// the syslog levels, and 7 and above are debug levels. Returns nullopt if `loglevel` has no value
// or is negative.
std::optional<std::uint8_t> LevelOf(std::optional<std::int64_t> loglevel) {
  if (!loglevel || *loglevel < 0) return std::nullopt;
  constexpr std::uint8_t kLevels[] = {1, 1, 1, 2, 3, 4, 4};
  return *loglevel < std::int64_t{std::size(kLevels)} ? kLevels[*loglevel] : 5;
}

void Compiler::CompileEvent(const EventDeclaration& declaration, EventClass* event) {
  constexpr std::size_t kMaxName = 16'000;
  const std::string name = declaration.name.substr(0, kMaxName);
  const std::size_t colon = name.find(':');
  event->provider = colon == name.npos ? default_provider_ : name.substr(0, colon);
  event->name = colon == name.npos ? name : name.substr(colon + 1);
  event->level = LevelOf(declaration.loglevel);
  CompileRoot(Root::kEventContext, declaration.context, &event->context);
  CompileRoot(Root::kEventFields, declaration.fields, &event->fields);
  if (!status_.ok()) return;
  if (event->context) SetContextRoles(&*event->context);
  if (is_perf_ && event->fields) SetPerfRoles(&*event->fields);
}

void Compiler::CompileStream(const StreamDeclaration& declaration, StreamClass* stream) {
  CompileRoot(Root::kPacketContext, declaration.packet_context, &stream->packet_context);
  CompileRoot(Root::kEventHeader, declaration.event_header, &stream->event_header);
  CompileRoot(Root::kStreamEventContext, declaration.event_context, &stream->event_context);
  if (!status_.ok()) return;
  if (stream->packet_context) SetHeaderRoles(Root::kPacketContext, &*stream->packet_context);
  if (stream->event_header) SetHeaderRoles(Root::kEventHeader, &*stream->event_header);
  if (stream->event_context) SetContextRoles(&*stream->event_context);
}

absl::StatusOr<Layout> Compiler::Run() {
  const std::string tracer = EnvironmentOf(metadata_, "tracer_name");
  is_perf_ = tracer == "perf";
  layout_.is_ours = tracer == "nettrace";
  default_provider_ = EnvironmentOf(metadata_, "domain");
  if (default_provider_.empty()) default_provider_ = tracer.empty() ? "CTF" : tracer;
  CompileRoot(Root::kPacketHeader, metadata_.packet_header, &layout_.packet_header);
  if (status_.ok() && layout_.packet_header) {
    SetHeaderRoles(Root::kPacketHeader, &*layout_.packet_header);
  }
  absl::flat_hash_map<std::uint64_t, std::vector<const EventDeclaration*>> events;
  for (const EventDeclaration& event : metadata_.events) events[event.stream_id].push_back(&event);
  std::vector<StreamDeclaration> streams = metadata_.streams;
  // A trace with a single kind of stream may omit the declaration of the stream.
  if (streams.empty()) streams.emplace_back();
  std::uint32_t number = 0;
  for (const StreamDeclaration& declaration : streams) {
    auto stream = std::make_unique<StreamClass>();
    CompileStream(declaration, stream.get());
    for (const EventDeclaration* const event : events[declaration.id]) {
      if (!status_.ok()) return status_;
      auto compiled = std::make_unique<EventClass>();
      CompileEvent(*event, compiled.get());
      compiled->number = number++;
      stream->events.emplace(event->id, std::move(compiled));
    }
    events.erase(declaration.id);
    layout_.streams.emplace(declaration.id, std::move(stream));
  }
  for (const auto& [id, orphans] : events) {
    Fail(orphans.front()->line, absl::StrCat("stream ", id, " is not declared"));
  }
  if (!status_.ok()) return status_;
  return std::move(layout_);
}

}  // namespace

std::string EnvironmentOf(const Metadata& metadata, std::string_view name) {
  for (const auto& [key, value] : metadata.environment) {
    if (key == name) return value;
  }
  return "";
}

absl::StatusOr<Layout> MakeLayout(const Metadata& metadata) { return Compiler(metadata).Run(); }

}  // namespace tools::importing::ctf
