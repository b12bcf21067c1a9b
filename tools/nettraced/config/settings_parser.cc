#include "tools/nettraced/config/settings_parser.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/base/values.h"
#include "tools/collector/dotnet/dotnet_provider.h"
#include "tools/nettraced/config/table_reader.h"
#include "tools/output/file_name.h"
#include "tools/output/output_queue.h"

namespace nettraced {
namespace {

constexpr std::size_t kMaxSelectors = 256;
constexpr std::size_t kMaxTriggers = 64;
constexpr std::size_t kMaxPids = 4096;
constexpr std::size_t kMaxFilter = 4096;  // limit of the kernel, in bytes
constexpr std::size_t kMaxPath = 4000;
// Limits of samples and stacks that do not depend on the machine, because the settings may be
// checked on another machine. CheckKernelLimits checks the limits of the kernel when the session
// starts.
constexpr std::uint32_t kMaxSampleRate = 100'000;
constexpr std::uint16_t kMaxFrames = 8190;
// Maximum bytes of the path of a Unix socket: the limit of the kernel, less the NUL and the suffix
// of a temporary name.
constexpr std::size_t kMaxSocketPath = 103;
// Maximum number of dots in a line, which limits the recursion of the TOML parser: each dot in a
// key nests another table. Dots in text and comments are counted, too, so longer lines must be
// split.
constexpr std::ptrdiff_t kMaxDotsInLine = 512;

// --- Selected events and targets.

std::optional<std::string> Level(TableReader* reader) {
  const toml::node* node = reader->Find("level");
  if (node == nullptr) return "*";
  std::string text;
  if (const auto number = node->value_exact<std::int64_t>()) text = absl::StrCat(*number);
  if (const auto name = node->value_exact<std::string>()) text = *name;
  if (base::ParseLevel(text).ok()) return text;
  reader->AddAt(
      "level",
      "invalid level; use 1..255, \"critical\", \"error\", \"warning\", \"info\" or \"verbose\"");
  return std::nullopt;
}

std::optional<std::string> Keywords(TableReader* reader, const char* key, const char* otherwise) {
  const toml::node* node = reader->Find(key);
  if (node == nullptr) return otherwise;
  if (const auto number = node->value_exact<std::int64_t>(); number && *number >= 0) {
    return absl::StrCat(*number);
  }
  if (const auto text = node->value_exact<std::string>(); text && base::ParseUint64(*text)) {
    return *text;
  }
  reader->AddAt(key, "not a 64-bit mask; use e.g. 0x3 or \"0xff00000000000000\"");
  return std::nullopt;
}

std::string Filter(TableReader* reader) {
  std::string filter = reader->String("filter", "\"prev_prio < 100\"").value_or("");
  if (!reader->Has("filter")) return filter;
  if (filter.find_first_not_of(" \t") == std::string::npos || filter.size() > kMaxFilter ||
      base::Printable(filter) != filter) {
    reader->AddAt("filter", absl::StrCat("empty, longer than ", kMaxFilter,
                                         " bytes, or with line ends or characters that cannot be "
                                         "printed; remove it, or use e.g. "
                                         "\"prev_prio < 100\""));
  }
  return filter;
}

// Reads the key `stacks` of a selector or of a session. Leaves `*stacks` unchanged if the key is
// absent.
void ReadStacks(TableReader* reader, std::optional<collector::StackOptions>* stacks) {
  const toml::node* node = reader->Find("stacks");
  if (node == nullptr) return;
  if (const auto enabled = node->value_exact<bool>()) {
    stacks->reset();
    if (*enabled) stacks->emplace();
    return;
  }
  const auto text = node->value_exact<std::string>();
  if (!text) {
    reader->AddAt("stacks",
                  "must be true, false or a string; use e.g. \"user\" or \"both,max=30\"");
    return;
  }
  const absl::StatusOr<collector::StackOptions> read = collector::ParseStacks(*text, kMaxFrames);
  if (read.ok() && read->copied_bytes != 0) {
    reader->AddAt("stacks",
                  "'dwarf' is for nettrace record only, because the service runs with rights that "
                  "the owners of the programs lack, and does not read their files; use \"user\", "
                  "\"kernel\" or \"both\"");
  } else if (read.ok()) {
    *stacks = *read;
  } else {
    reader->AddAt("stacks", base::Printable(std::string(read.status().message())));
  }
}

// Reads the keys `cpu` and `off_cpu`, which request samples in addition to the events of `select`.
// An invalid value counts as true, so that no second error reports that the session records
// nothing.
void ReadSamples(TableReader* reader, SessionSettings* session) {
  session->off_cpu = reader->Has("off_cpu");
  reader->Bool("off_cpu", &session->off_cpu);
  const toml::node* node = reader->Find("cpu");
  if (node == nullptr) return;
  std::string text(collector::kUsualSampleRate);
  if (const auto enabled = node->value_exact<bool>()) {
    if (!*enabled) return;
  } else if (const auto number = node->value_exact<std::int64_t>()) {
    text = absl::StrCat(*number);
  } else if (const auto rate = node->value_exact<std::string>()) {
    text = *rate;
  } else {
    reader->AddAt("cpu", "must be true, false or a rate; use e.g. 997 or \"997Hz\"");
  }
  absl::StatusOr<std::uint32_t> rate = collector::ParseSampleRate(text, kMaxSampleRate);
  if (!rate.ok()) {
    reader->AddAt("cpu", base::Printable(std::string(rate.status().message())));
    rate = collector::ParseSampleRate(collector::kUsualSampleRate, kMaxSampleRate);
  }
  session->cpu_rate = *rate;
}

// Returns the selector of a table as text, or nullopt if there was an error.
std::optional<std::string> SelectorText(TableReader* reader) {
  const auto provider = reader->String("provider", "\"Shop\" or \"Shop_*\"");
  auto tracepoint = reader->String("tracepoint", "\"sched:sched_switch\"");
  const auto level = Level(reader);
  const auto any = Keywords(reader, "keywords", "*");
  const auto all = Keywords(reader, "keywords_all", "0");
  if (reader->Has("provider") == reader->Has("tracepoint")) {
    reader->Add(reader->table().source(),
                "needs either provider or tracepoint, e.g. { provider = \"Shop\", level = "
                "\"info\" } or { tracepoint = \"sched:sched_switch\" }");
    return std::nullopt;
  }
  if (!tracepoint) {
    if (!provider || !level || !any || !all) return std::nullopt;
    if (provider->find(':') != std::string::npos) {
      reader->AddAt("provider",
                    "a colon is not allowed in the name or pattern of a provider; use the keys "
                    "level, keywords and keywords_all, or tracepoint = \"system:event\"");
      return std::nullopt;
    }
    return absl::StrCat(*provider, ":", *level, ":", *any, ":", *all);
  }
  for (const char* key : {"level", "keywords", "keywords_all"}) {
    if (reader->Has(key)) {
      reader->AddAt(
          key, "only allowed with provider; use filter to restrict the events of a tracepoint");
    }
  }
  return tracepoint;
}

// Reads an entry of `select`. `stacks` applies if the entry has no key `stacks`.
std::optional<collector::Selector> ReadSelector(const SettingsFile& file, const toml::node& node,
                                                const std::string& title,
                                                std::optional<collector::StackOptions> stacks) {
  std::optional<std::string> text = node.value_exact<std::string>();
  std::string filter;
  bool wants_tracepoint = false;
  if (const toml::table* table = node.as_table()) {
    TableReader reader(file, *table, absl::StrCat(title, " select:"));
    text = SelectorText(&reader);
    filter = Filter(&reader);
    ReadStacks(&reader, &stacks);
    wants_tracepoint = reader.Has("tracepoint");
    reader.RefuseOthers();
    if (!text) return std::nullopt;
  }
  if (!text) {
    file.Add(node.source(), absl::StrCat(title, " select: must be a string or a table"));
    return std::nullopt;
  }
  absl::StatusOr<collector::Selector> selector = collector::ParseSelector(*text);
  if (!selector.ok()) {
    file.Add(node.source(),
             absl::StrCat(title,
                          " select: ", base::Printable(std::string(selector.status().message()))));
    return std::nullopt;
  }
  if (wants_tracepoint && selector->kind == collector::Selector::Kind::kProvider) {
    file.Add(node.source(), absl::StrCat(title, " select: tracepoint ", Shown(*text),
                                         " is a provider; use provider = ..., or system:event"));
    return std::nullopt;
  }
  selector->filter = filter;
  selector->stacks = stacks;
  return *std::move(selector);
}

// Reads the providers of .NET.
void ReadDotnet(TableReader* reader, std::vector<std::string>* providers) {
  constexpr char kForm[] = "dotnet = [\"common\", \"MyCompany-Shop:info\"]";
  const toml::array* array = reader->Array("dotnet", kMaxSelectors, kForm);
  if (array == nullptr) return;
  bool is_wrong = false;
  for (const toml::node& node : *array) {
    const auto text = node.value_exact<std::string>();
    providers->push_back(text.value_or(""));
    absl::Status status = collector::ParseDotnetProviders(providers->back()).status();
    if (!text || text->empty()) {
      status = absl::InvalidArgumentError(absl::StrCat("not a provider; use e.g. ", kForm));
    }
    if (status.ok()) continue;
    is_wrong = true;
    reader->Add(node.source(),
                absl::StrCat("dotnet: ", base::Printable(std::string(status.message()))));
  }
  if (is_wrong || providers->empty()) return;
  const absl::Status status =
      collector::ParseDotnetProviders(absl::StrJoin(*providers, ",")).status();
  if (!status.ok()) reader->AddAt("dotnet", base::Printable(std::string(status.message())));
}

// Reads the selectors and their stacks. ReadSamples must have been called before.
void ReadSelect(const SettingsFile& file, TableReader* reader, SessionSettings* session) {
  constexpr char kForm[] = "select = [\"Shop:info\", \"sched:sched_switch\"]";
  std::optional<collector::StackOptions> stacks;
  ReadStacks(reader, &stacks);
  const toml::array* array = reader->Array("select", kMaxSelectors, kForm);
  if (!reader->Has("select")) {
    if (!session->has_samples() && !reader->Has("dotnet")) {
      reader->Add(reader->table().source(),
                  absl::StrCat("records nothing; add e.g. ", kForm, ", or cpu = true"));
    } else if (reader->Has("stacks")) {
      reader->AddAt(
          "stacks",
          "only applies to events that the key 'select' chooses; remove it: samples always "
          "have stacks");
    }
  }
  if (array == nullptr) return;
  for (const toml::node& node : *array) {
    if (auto selector = ReadSelector(file, node, reader->title(), stacks)) {
      session->select.push_back(*selector);
    }
  }
}

void ReadPids(TableReader* reader, std::vector<pid_t>* pids) {
  const toml::array* array = reader->Array("pids", kMaxPids, "pids = [1234]");
  if (array == nullptr) return;
  for (const toml::node& node : *array) {
    const auto pid = node.value_exact<std::int64_t>();
    if (!pid || *pid < 1 || *pid > std::numeric_limits<pid_t>::max()) {
      reader->Add(node.source(), absl::StrCat("pids: not a process id; use numbers from 1 to ",
                                              std::numeric_limits<pid_t>::max()));
    } else {
      pids->push_back(static_cast<pid_t>(*pid));
    }
  }
}

bool IsUnitName(const std::string& name) {
  static constexpr std::string_view kEndings[] = {".service", ".slice", ".scope"};
  return name.size() < 256 && name.find('/') == std::string::npos &&
         std::any_of(std::begin(kEndings), std::end(kEndings), [&name](std::string_view ending) {
           return name.size() > ending.size() && name.ends_with(ending);
         });
}

void ReadTarget(TableReader* session, TargetSettings* target) {
  std::optional<TableReader> reader = session->Table("target");
  if (!reader) return;
  ReadPids(&*reader, &target->pids);
  target->command = reader->String("command", "\"nginx\"").value_or("");
  if (reader->Has("command") && (target->command.empty() || target->command.size() > 15)) {
    reader->AddAt("command", absl::StrCat(Shown(target->command),
                                          " is not a thread name; thread names have 1 to 15 "
                                          "bytes"));
  }
  target->cgroup = reader->String("cgroup", "\"/system.slice/shop.service\"").value_or("");
  if (reader->Has("cgroup") && (target->cgroup.empty() || target->cgroup.size() > kMaxPath)) {
    reader->AddAt("cgroup",
                  absl::StrCat("has ", target->cgroup.size(), " bytes; use a path of 1 to ",
                               kMaxPath, " bytes, e.g. \"/system.slice/shop.service\""));
  }
  target->unit = reader->String("unit", "\"shop.service\"").value_or("");
  if (reader->Has("unit") && !IsUnitName(target->unit)) {
    reader->AddAt("unit", absl::StrCat(Shown(target->unit),
                                       " is not the name of a service, slice or scope of at most "
                                       "255 bytes; use e.g. \"shop.service\""));
  }
  const int kinds = static_cast<int>(reader->Has("pids")) +
                    static_cast<int>(reader->Has("cgroup")) + static_cast<int>(reader->Has("unit"));
  if (kinds > 1) {
    reader->Add(reader->table().source(),
                "has more than one of pids, cgroup and unit; use one of them in each session");
  } else if (kinds == 0 && !reader->Has("command")) {
    reader->Add(reader->table().source(),
                "selects no processes; add pids, cgroup, unit or command");
  }
  reader->RefuseOthers();
}

// --- Outputs of sessions.

void ReadMode(TableReader* reader, mode_t* mode) {
  const auto text = reader->String("mode", "\"0640\"");
  if (!text) return;
  mode_t read = 0;
  bool is_octal = !text->empty() && text->size() <= 4;
  for (const char c : *text) {
    is_octal = is_octal && c >= '0' && c <= '7';
    read = read * 8 + static_cast<mode_t>(c - '0');
  }
  if (is_octal && (read & ~mode_t{0664}) == 0 && (read & 0600) == 0600) {
    *mode = read;
  } else {
    reader->AddAt("mode",
                  "invalid mode; use octal digits that allow the owner to read and write, allow "
                  "only the owner and group to write, and contain no execute bit, e.g. \"0640\"");
  }
}

void CheckPath(TableReader* reader, const char* key, const std::string& path) {
  if (!path.starts_with('/')) {
    reader->AddAt(key, absl::StrCat(Shown(path), " is not an absolute path; begin it with '/'"));
  } else if (path.size() > kMaxPath) {
    reader->AddAt(key,
                  absl::StrCat("the path has ", path.size(), " bytes; the maximum is ", kMaxPath));
  }
}

void ReadSync(TableReader* reader, output::SyncPolicy* sync) {
  const auto text = reader->String("sync", "\"rotation\"");
  if (!text) return;
  if (*text == "off") {
    *sync = output::SyncPolicy::kOff;
  } else if (*text == "interval") {
    *sync = output::SyncPolicy::kInterval;
  } else if (*text == "rotation") {
    *sync = output::SyncPolicy::kRotation;
  } else {
    reader->AddAt("sync", absl::StrCat(Shown(*text),
                                       " is not valid; use \"off\", \"interval\" or \"rotation\""));
  }
}

// Minimum of flight.keep_bytes.
constexpr std::uint64_t kLeastFlight = std::uint64_t{1} << 20;

// Fits files.keep_bytes and the size of one file (rotate_bytes or flight.keep_bytes) to each other,
// because files.keep_bytes must have room for one file. If the settings contain only one of the
// two, adjusts the default of the other.
void FitDefaults(TableReader* session_reader, TableReader* files_reader, SessionSettings* session) {
  constexpr std::uint64_t kFilesInBound = 4;
  const bool is_flight = session->kind == SessionSettings::Kind::kFlight;
  const toml::table* flight = session_reader->table()["flight"].as_table();
  const bool is_size_written = is_flight
                                   ? flight != nullptr && flight->contains("keep_bytes")
                                   : files_reader != nullptr && files_reader->Has("rotate_bytes");
  const bool is_bound_written = files_reader != nullptr && files_reader->Has("keep_bytes");
  std::uint64_t* const size =
      is_flight ? &session->flight.keep_bytes : &session->files.rotate_bytes;
  std::uint64_t* const bound = &session->files.keep_bytes;
  if (is_bound_written && !is_size_written && *bound != 0) {
    *size = std::min(*size, is_flight ? std::max(*bound, kLeastFlight) : *bound);
  } else if (is_size_written && !is_bound_written) {
    *bound = std::max(*bound, std::min(*size, kNoLimit / kFilesInBound) * kFilesInBound);
  }
}

// Adds an error if keep_bytes is less than the size of one file. Adds another error if the settings
// do not limit the disk space of the session.
void CheckRetention(TableReader* reader, const SessionSettings& session) {
  const output::FilesSettings& files = session.files;
  const bool is_flight = session.kind == SessionSettings::Kind::kFlight;
  const std::uint64_t each = is_flight ? session.flight.keep_bytes : files.rotate_bytes;
  const char* const size_key = is_flight ? "flight.keep_bytes" : "rotate_bytes";
  if (files.keep_bytes != 0 && files.keep_bytes < each) {
    const bool is_least = is_flight && each <= kLeastFlight;
    reader->AddAt("keep_bytes",
                  absl::StrCat(base::FormatSize(files.keep_bytes), " is less than ", size_key, " (",
                               base::FormatSize(each), "), the size of one file; raise keep_bytes",
                               is_least ? "" : absl::StrCat(", or lower ", size_key)));
  }
  // keep_free_bytes counts as a limit only if the settings contain it: the files may then fill the
  // file system except for these bytes. If its default counted, every session would have a limit,
  // and this check would never add an error.
  const bool has_free_bytes =
      files.keep_free_bytes != 0 && files.keep_free_bytes != output::FilesSettings::kKeepFreePart;
  if (files.keep_bytes == 0 && !has_free_bytes && (files.keep_files == 0 || each == 0)) {
    reader->AddAt("keep_bytes",
                  "off, and no other key limits the disk space; set keep_bytes or keep_free_bytes, "
                  "or keep_files with a limited file size");
  }
}

void ReadFiles(TableReader* session_reader, SessionSettings* session) {
  constexpr std::uint64_t kLeast = 4096;
  const absl::Duration year = absl::Hours(24 * 366);
  std::optional<TableReader> reader = session_reader->Table("files");
  if (!reader) {
    if (!session_reader->Has("files")) FitDefaults(session_reader, nullptr, session);
    return;
  }
  output::FilesSettings* files = &session->files;
  if (const auto directory = reader->String("directory", "\"/var/lib/nettraced/shop\"")) {
    CheckPath(&*reader, "directory", *directory);
    files->directory = *directory;
  }
  if (const auto name = reader->String("name", "\"{session}-{time}\"")) {
    const absl::Status status = output::FileNames::Create(*name, session->name).status();
    if (!status.ok()) reader->AddAt("name", std::string(status.message()));
    files->name = *name;
  }
  ReadMode(&*reader, &files->mode);
  reader->Bytes("rotate_bytes", kLeast, kNoLimit, true, &files->rotate_bytes);
  reader->Duration("rotate_every", absl::Seconds(1), year, true, &files->rotate_every);
  reader->Count("keep_files", 0, 1000000, &files->keep_files);
  reader->Bytes("keep_bytes", kLeast, kNoLimit, true, &files->keep_bytes);
  reader->Duration("keep_age", absl::Seconds(1), 100 * year, true, &files->keep_age);
  reader->Bytes("keep_free_bytes", 1, kNoLimit, true, &files->keep_free_bytes);
  ReadSync(&*reader, &files->sync);
  if (session->kind == SessionSettings::Kind::kFlight) {
    for (const char* key : {"rotate_bytes", "rotate_every"}) {
      if (reader->Has(key)) {
        reader->AddAt(
            key, "not allowed with a flight recorder, which writes files on request; remove it");
      }
    }
  }
  FitDefaults(session_reader, &*reader, session);
  CheckRetention(&*reader, *session);
  reader->RefuseOthers();
}

void ReadTriggers(const SettingsFile& file, TableReader* reader,
                  std::vector<collector::Trigger>* triggers) {
  const toml::array* array =
      reader->Array("triggers", kMaxTriggers, "triggers = [\"Shop:OrderFailed\"]");
  if (array == nullptr) return;
  for (const toml::node& node : *array) {
    const auto text = node.value_exact<std::string>();
    if (!text) {
      reader->Add(node.source(), "triggers: not a string; use e.g. \"Shop:OrderFailed\"");
      continue;
    }
    absl::StatusOr<collector::Trigger> trigger = collector::ParseTrigger(*text);
    if (trigger.ok()) {
      triggers->push_back(*std::move(trigger));
    } else {
      file.Add(node.source(),
               absl::StrCat(reader->title(), " ", std::string(trigger.status().message())));
    }
  }
}

void ReadFlight(const SettingsFile& file, TableReader* session, FlightSettings* flight) {
  std::optional<TableReader> reader = session->Table("flight");
  if (!reader) return;
  reader->Bytes("keep_bytes", kLeastFlight, std::uint64_t{1} << 40, false, &flight->keep_bytes);
  reader->Duration("keep_time", absl::Seconds(1), absl::Hours(24 * 366), true, &flight->keep_time);
  ReadTriggers(file, &*reader, &flight->triggers);
  reader->Duration("after", absl::ZeroDuration(), absl::Minutes(10), false, &flight->after);
  reader->Count("limit_count", 1, 10000, &flight->limit_count);
  reader->Duration("limit_time", absl::Seconds(1), absl::Hours(24 * 366), false,
                   &flight->limit_time);
  reader->RefuseOthers();
}

void ReadPipe(TableReader* session, PipeSettings* pipe) {
  std::optional<TableReader> reader = session->Table("pipe");
  if (!reader) return;
  pipe->path = reader->String("path", "\"/run/shop/trace.pipe\"").value_or("");
  CheckPath(&*reader, "path", pipe->path);
  reader->RefuseOthers();
}

void ReadCompression(TableReader* reader, CompressionSettings* compression) {
  const toml::node* node = reader->Find("compression");
  if (node == nullptr) return;
  if (const auto enabled = node->value_exact<bool>()) {
    compression->enabled = *enabled;
    return;
  }
  const auto level = node->value_exact<std::int64_t>();
  if (level && *level >= 1 && *level <= 19) {
    compression->enabled = true;
    compression->level = static_cast<int>(*level);
    return;
  }
  reader->AddAt("compression", "must be true, false or a zstd level from 1 to 19");
}

void ReadOutput(const SettingsFile& file, TableReader* reader, SessionSettings* session) {
  if (reader->Has("flight")) session->kind = SessionSettings::Kind::kFlight;
  if (reader->Has("pipe")) {
    session->kind = SessionSettings::Kind::kPipe;
    if (reader->Has("flight") || reader->Has("files")) {
      reader->AddAt("pipe",
                    "cannot be combined with files or flight; use another session for them");
    }
  }
  ReadFlight(file, reader, &session->flight);
  ReadPipe(reader, &session->pipe);
  ReadFiles(reader, session);
  ReadCompression(reader, &session->compression);
}

// --- Sessions and the daemon.

bool IsSessionName(std::string_view name) {
  const auto is_alnum = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  return !name.empty() && name.size() <= 64 && is_alnum(name[0]) &&
         std::all_of(name.begin(), name.end(), [&is_alnum](char c) {
           return is_alnum(c) || c == '_' || c == '.' || c == '-';
         });
}

void ReadRings(TableReader* reader, SessionSettings* session) {
  constexpr std::uint64_t kLeastRing = 4096;
  constexpr std::uint64_t kMostRing = std::uint64_t{8} << 30;
  reader->Bytes("ring_size", kLeastRing, kMostRing, false, &session->ring_size);
  if (!std::has_single_bit(session->ring_size)) {
    reader->AddAt("ring_size",
                  absl::StrCat("not a power of two; use ",
                               base::FormatSize(std::bit_floor(session->ring_size)), " or ",
                               base::FormatSize(std::bit_ceil(session->ring_size))));
  }
  reader->Bytes("queue_bytes", output::OutputQueue::kPiece, std::uint64_t{16} << 30, false,
                &session->queue_bytes);
  reader->Duration("interval", absl::Milliseconds(1), absl::Minutes(1), false, &session->interval);
}

SessionSettings ReadSession(const SettingsFile& file, const toml::key& key,
                            const toml::node& value) {
  SessionSettings session;
  session.name = std::string(key.str());
  session.origin = absl::StrCat(file.name, ":", key.source().begin.line);
  const toml::table* table = value.as_table();
  if (table == nullptr) {
    file.Add(key.source(),
             absl::StrCat("session ", Shown(key.str()), " is not a table; write [session.NAME]"));
    return session;
  }
  TableReader reader(file, *table, absl::StrCat("[session.", base::Printable(key.str()), "]"));
  if (!IsSessionName(key.str())) {
    file.Add(key.source(), absl::StrCat("session ", Shown(key.str()),
                                        ": invalid name; use 1 to 64 letters, digits, '_', '-' or "
                                        "'.', and start with a letter or digit"));
  }
  reader.Bool("start", &session.start);
  ReadSamples(&reader, &session);
  ReadDotnet(&reader, &session.dotnet);
  ReadSelect(file, &reader, &session);
  ReadTarget(&reader, &session.target);
  if (session.has_samples() && !session.target.command.empty()) {
    reader.AddAt("target",
                 "command does not apply to cpu and off_cpu; use pids, cgroup or unit, or another "
                 "session for the samples");
  }
  ReadRings(&reader, &session);
  ReadOutput(file, &reader, &session);
  reader.RefuseOthers();
  return session;
}

bool IsGroupName(const std::string& name) {
  return name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != ':' && c != '/';
         });
}

// Limits of the settings of rings in user space: a number of services, and numbers of bytes.
constexpr std::uint64_t kMaxServices = 65536;
constexpr std::uint64_t kMinServiceBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kMaxServiceBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxUserBytes = std::uint64_t{1} << 40;

void ReadServiceRings(TableReader* reader, RingsSettings* rings) {
  using Accept = RingsSettings::Accept;
  if (const auto accept = reader->String("accept", "\"auto\"")) {
    if (*accept != "auto" && *accept != "always" && *accept != "never") {
      reader->AddAt("accept", "must be \"auto\", \"always\" or \"never\"");
    }
    rings->accept = *accept == "always"  ? Accept::kAlways
                    : *accept == "never" ? Accept::kNever
                                         : Accept::kAuto;
  }
  if (const auto path = reader->String("socket", "\"/run/nettraced/events\"")) {
    CheckPath(reader, "socket", *path);
    if (path->size() > kMaxSocketPath) {
      reader->AddAt("socket", absl::StrCat("the path has ", path->size(), " bytes; the maximum is ",
                                           kMaxSocketPath));
    }
    rings->socket = *path;
  }
  reader->Count("services", 1, kMaxServices, &rings->services);
  reader->Count("services_of_user", 1, kMaxServices, &rings->services_of_user);
  reader->Bytes("bytes_of_user", kMinServiceBytes, kMaxUserBytes, /*off=*/false,
                &rings->bytes_of_user);
  reader->Bytes("bytes_of_service", kMinServiceBytes, kMaxServiceBytes, /*off=*/false,
                &rings->bytes_of_service);
  if (rings->bytes_of_service > rings->bytes_of_user) {
    reader->AddAt("bytes_of_service",
                  "more than bytes_of_user, the limit of all services of a user together; lower "
                  "it, or raise bytes_of_user");
  }
  reader->RefuseOthers();
}

void ReadDaemon(const SettingsFile& file, const toml::table& table, DaemonSettings* settings) {
  TableReader table_reader(file, table, "[daemon]");
  TableReader* reader = &table_reader;
  if (const auto path = reader->String("state_directory", "\"/var/lib/nettraced\"")) {
    CheckPath(reader, "state_directory", *path);
    settings->state_directory = *path;
  }
  if (const auto path = reader->String("runtime_directory", "\"/run/nettraced\"")) {
    CheckPath(reader, "runtime_directory", *path);
    settings->runtime_directory = *path;
  }
  for (const auto& [key, group] : {std::pair{"control_group", &settings->control_group},
                                   std::pair{"look_group", &settings->look_group}}) {
    const auto name = reader->String(key, "\"tracing\"");
    if (!name) continue;
    if (!IsGroupName(*name)) {
      reader->AddAt(key, absl::StrCat(Shown(*name),
                                      " is not a group name; use at most 64 visible ASCII "
                                      "characters other than ':' and '/'"));
    }
    *group = *name;
  }
  reader->Count("remembered_names", 0, 65536, &settings->remembered_names);
  if (auto rings = reader->Table("rings")) ReadServiceRings(&*rings, &settings->rings);
  reader->RefuseOthers();
}

// Returns whether no line has more than kMaxDotsInLine dots. Otherwise adds an error.
bool IsShallow(std::string_view text, const std::string& file, SettingsErrors* errors) {
  std::uint32_t line = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view content = text.substr(0, end);
    if (std::count(content.begin(), content.end(), '.') > kMaxDotsInLine) {
      errors->Add(file, line, 1,
                  absl::StrCat("more than ", kMaxDotsInLine, " dots in this line; split the line"));
      return false;
    }
    text.remove_prefix(end);
    ++line;
  }
  return true;
}

}  // namespace

void SettingsParser::Parse(std::string_view text, const std::string& file_name) {
  const SettingsFile file = {file_name, &errors_};
  if (text.size() > kMaxText) {
    errors_.Add(file_name, 1, 1,
                absl::StrCat("larger than ", base::FormatSize(kMaxText),
                             "; split the settings into several files"));
    return;
  }
  if (!IsShallow(text, file_name, &errors_)) return;
  const toml::parse_result result = toml::parse(text);
  if (!result) {
    const toml::parse_error& error = result.error();
    file.Add(error.source(), base::Printable(error.description()));
    return;
  }
  const DaemonSettings before = daemon_;
  for (const auto& [key, value] : result.table()) {
    if (key.str() != "daemon" && key.str() != "session") {
      file.Add(key.source(),
               absl::StrCat("unknown key ", Shown(key.str()), "; use [daemon] or [session.NAME]"));
      continue;
    }
    const toml::table* table = value.as_table();
    if (table == nullptr) {
      file.Add(key.source(), absl::StrCat(Shown(key.str()), " is not a table; write [",
                                          key.str() == "daemon" ? "daemon]" : "session.NAME]"));
    } else if (key.str() == "session") {
      for (const auto& [name, session] : *table) {
        SessionSettings settings = ReadSession(file, name, session);
        settings.file = file_name.substr(file_name.rfind('/') + 1);
        const toml::source_position place = name.source().begin;
        sessions_.push_back({std::move(settings), file_name, place.line, place.column});
      }
    } else if (!with_daemon_) {
      file.Add(key.source(), "[daemon] is only allowed in the daemon's own files; remove it");
    } else {
      ReadDaemon(file, *table, &daemon_);
    }
  }
  if (errors_.HasFile(file_name)) daemon_ = before;
}

void SettingsParser::CheckBeside(const Entry& session, const Entry& other) {
  const SessionSettings& a = session.settings;
  const SessionSettings& b = other.settings;
  const auto add = [&](const std::string& what, const std::string& remedy) {
    errors_.Add(session.file, session.line, session.column,
                absl::StrCat("session ", Shown(a.name), " ", what, " session ", Shown(b.name),
                             " in ", base::Printable(b.origin), "; ", remedy));
  };
  // If only the file of `other` has errors, reports the conflict there. That file is ignored
  // anyway, and the file of `session` stays valid.
  if (errors_.HasFile(other.file) && !errors_.HasFile(session.file)) {
    return CheckBeside(other, session);
  }
  if (a.name == b.name) {
    add("has the same name as", "rename one of them");
    return;
  }
  const auto has_pipe = [](const SessionSettings& settings) {
    return settings.kind == SessionSettings::Kind::kPipe;
  };
  if (has_pipe(a) && has_pipe(b) && a.pipe.path == b.pipe.path) {
    add("has the same pipe as", "use another pipe");
  }
  if (ShareFiles(InDirectory(a, daemon_.state_directory),
                 InDirectory(b, daemon_.state_directory))) {
    add(kSharesFiles, kSharesFilesRemedy);
  }
}

absl::Status SettingsParser::CheckSessions() {
  if (!state_directory_.empty()) daemon_.state_directory = state_directory_;
  if (sessions_.size() > kMaxSessions) {
    const Entry& last = sessions_.back();
    errors_.Add(last.file, last.line, last.column,
                absl::StrCat(sessions_.size(), " sessions; the maximum is ", kMaxSessions,
                             " in all files together; remove some of them"));
    return errors_.ToStatus();
  }
  std::stable_sort(sessions_.begin(), sessions_.end(), [](const Entry& a, const Entry& b) {
    return a.settings.name < b.settings.name;
  });
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) CheckBeside(sessions_[i], sessions_[j]);
  }
  return absl::OkStatus();
}

absl::StatusOr<DaemonSettings> SettingsParser::FinishWithoutWrongFiles() {
  RETURN_IF_ERROR(CheckSessions());
  for (Entry& session : sessions_) {
    if (!errors_.HasFile(session.file)) daemon_.sessions.push_back(std::move(session.settings));
  }
  daemon_.errors = errors_.ToStatus();
  for (const std::string& file : errors_.files()) {
    daemon_.wrong_files.push_back(file.substr(file.rfind('/') + 1));
  }
  return std::move(daemon_);
}

absl::StatusOr<DaemonSettings> SettingsParser::Finish() {
  absl::StatusOr<DaemonSettings> settings = FinishWithoutWrongFiles();
  if (settings.ok() && !settings->errors.ok()) return settings->errors;
  return settings;
}

}  // namespace nettraced
