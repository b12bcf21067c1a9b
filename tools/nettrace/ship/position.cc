#include "tools/nettrace/ship/position.h"

#include <fcntl.h>
#include <rapidjson/document.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nettrace/sink.h"
#include "tools/base/file_lock.h"
#include "tools/base/json_text.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/output/atomic_file.h"

namespace tools::ship {
namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kMaxSize = std::size_t{64} << 20;

// Reads members of an object. Has an error if one is missing or has another type.
class ObjectReader {
 public:
  explicit ObjectReader(const rapidjson::Value& object) : object_(object) {
    ok_ = object.IsObject();
  }
  bool ok() const { return ok_; }

  std::uint64_t Number(const char* key) {
    const rapidjson::Value* const value = Find(key);
    ok_ = ok_ && value->IsUint64();
    return ok_ ? value->GetUint64() : 0;
  }
  std::int64_t SignedNumber(const char* key) {
    const rapidjson::Value* const value = Find(key);
    ok_ = ok_ && value->IsInt64();
    return ok_ ? value->GetInt64() : 0;
  }
  bool Bool(const char* key) {
    const rapidjson::Value* const value = Find(key);
    ok_ = ok_ && value->IsBool();
    return ok_ && value->GetBool();
  }
  std::string Text(const char* key) {
    const rapidjson::Value* const value = Find(key);
    ok_ = ok_ && value->IsString();
    return ok_ ? std::string(value->GetString(), value->GetStringLength()) : "";
  }
  // Calls `read` with a reader of each element of an array of objects.
  template <typename Read>
  void Array(const char* key, const Read& read) {
    const rapidjson::Value* const value = Find(key);
    ok_ = ok_ && value->IsArray();
    if (!ok_) return;
    for (const rapidjson::Value& element : value->GetArray()) {
      ObjectReader reader(element);
      read(&reader);
      ok_ = ok_ && reader.ok();
    }
  }
  ObjectReader Object(const char* key) {
    const rapidjson::Value* const value = Find(key);
    static const rapidjson::Value kNone;
    return ObjectReader(ok_ ? *value : kNone);
  }

 private:
  const rapidjson::Value* Find(const char* key) {
    if (!ok_) return nullptr;
    const auto member = object_.FindMember(key);
    ok_ = member != object_.MemberEnd();
    return ok_ ? &member->value : nullptr;
  }

  const rapidjson::Value& object_;
  bool ok_ = false;
};

// Writes a number as a JSON number, even if a double cannot represent it. ObjectReader, the only
// reader of this file, reads all 64 bits.
void PutExact(base::JsonWriter* json, const char* key, std::uint64_t number) {
  json->PlainKey(key);
  json->Uint64(number);
}

}  // namespace

absl::StatusOr<Position> Position::FromText(std::string_view text) {
  rapidjson::Document json;
  // Parses without recursion, because hostile contents may be nested deeply.
  json.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  Position position;
  if (!json.HasParseError()) {
    ObjectReader reader(json);
    const bool is_known = reader.Number("version") == kVersion;
    reader.Array("files", [&](ObjectReader* file) {
      const std::string path = file->Text("path");
      ShippedFile& entry = position.files[path];
      entry.changed = file->SignedNumber("changed");
      entry.records = file->Number("records");
      entry.events = file->Number("events");
      entry.spans = file->Number("spans");
      entry.is_complete = file->Bool("complete");
    });
    reader.Array("deleted", [&](ObjectReader* file) {
      DeletedFile& entry = position.deleted.emplace_back();
      entry.path = file->Text("path");
      entry.changed = file->SignedNumber("changed");
      entry.files = file->Number("files");
    });
    reader.Array("sections", [&](ObjectReader* section) {
      const std::string name = section->Text("name");
      ShippedSection& entry = position.sections[name];
      entry.number = section->Number("number");
      entry.events = section->Number("events");
    });
    ObjectReader totals = reader.Object("totals");
    position.totals = {totals.Number("accepted"),        totals.Number("rejected"),
                       totals.Number("refused"),         totals.Number("lostFiles"),
                       totals.Number("missingSections"), totals.Number("missingEvents"),
                       totals.Number("spans"),           totals.Number("refusedSpans")};
    if (is_known && reader.ok() && totals.ok()) return position;
  }
  return absl::DataLossError(
      "not a state file of nettrace ship; name another file, or remove it to send "
      "everything again");
}

std::string Position::ToText() const {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  PutExact(&json, "version", kVersion);
  json.PlainKey("files");
  json.StartArray();
  for (const auto& [path, file] : files) {
    json.StartObject();
    base::PutText(&json, "path", path);
    json.PlainKey("changed");
    json.Int64(file.changed);
    PutExact(&json, "records", file.records);
    PutExact(&json, "events", file.events);
    PutExact(&json, "spans", file.spans);
    json.PlainKey("complete");
    json.Bool(file.is_complete);
    json.EndObject();
  }
  json.EndArray();
  json.PlainKey("sections");
  json.StartArray();
  for (const auto& [name, section] : sections) {
    json.StartObject();
    base::PutText(&json, "name", name);
    PutExact(&json, "number", section.number);
    PutExact(&json, "events", section.events);
    json.EndObject();
  }
  json.EndArray();
  json.PlainKey("deleted");
  json.StartArray();
  for (const DeletedFile& file : deleted) {
    json.StartObject();
    base::PutText(&json, "path", file.path);
    json.PlainKey("changed");
    json.Int64(file.changed);
    PutExact(&json, "files", file.files);
    json.EndObject();
  }
  json.EndArray();
  json.PlainKey("totals");
  json.StartObject();
  PutExact(&json, "accepted", totals.accepted);
  PutExact(&json, "rejected", totals.rejected);
  PutExact(&json, "refused", totals.refused);
  PutExact(&json, "lostFiles", totals.lost_files);
  PutExact(&json, "missingSections", totals.missing_sections);
  PutExact(&json, "missingEvents", totals.missing_events);
  PutExact(&json, "spans", totals.spans);
  PutExact(&json, "refusedSpans", totals.refused_spans);
  json.EndObject();
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

void Position::Delete(const std::string& path, const std::string& series) {
  const auto file = files.find(path);
  if (file == files.end()) return;
  ++totals.lost_files;
  if (const auto section = sections.find(series); section != sections.end()) {
    section->second.events += file->second.events;
  }
  if (deleted.size() < kMaxDeleted) {
    deleted.push_back({path, file->second.changed});
  } else {
    deleted.back() = {path, file->second.changed, deleted.back().files + 1};
  }
  files.erase(file);
}

absl::StatusOr<PositionFile> PositionFile::Open(const std::string& path) {
  PositionFile file(path);
  const std::string lock = path + ".lock";
  file.lock_ = base::UniqueFd(
      open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, output::kPrivateMode));
  if (!file.lock_.valid()) return base::ErrnoStatus(errno, base::Printable(lock));
  if (!base::ClaimFile(file.lock_.get())) {
    return absl::FailedPreconditionError(
        absl::StrCat(base::Printable(path),
                     ": another nettrace ship uses this file; stop it, or "
                     "name another file with --state"));
  }
  const absl::StatusOr<std::string> text = base::ReadFile(path, kMaxSize);
  if (absl::IsNotFound(text.status())) return file;
  if (!text.ok()) return text.status();
  absl::StatusOr<Position> position = Position::FromText(*text);
  if (!position.ok()) {
    return absl::Status(position.status().code(),
                        absl::StrCat(base::Printable(path), ": ", position.status().message()));
  }
  file.position = *std::move(position);
  return file;
}

absl::Status PositionFile::Save() const {
  const std::string text = position.ToText();
  const auto save = [&]() -> absl::Status {
    output::AtomicFile file(path_);
    ASSIGN_OR_RETURN(const std::unique_ptr<nettrace::FdSink> sink, file.Create({}));
    std::size_t taken = 0;
    RETURN_IF_ERROR(sink->Append(std::as_bytes(std::span(text)), &taken));
    return file.Keep();
  };
  absl::Status status = save();
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(base::Printable(path_), ": ", status.message()));
}

}  // namespace tools::ship
