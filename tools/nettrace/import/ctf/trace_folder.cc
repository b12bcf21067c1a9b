#include "tools/nettrace/import/ctf/trace_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace tools::importing::ctf {
namespace {

namespace fs = std::filesystem;

constexpr char kMetadata[] = "metadata";

absl::Status Named(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

struct Listing {
  std::vector<std::string> files;    // names, sorted
  std::vector<std::string> folders;  // paths, sorted
  bool has_metadata = false;
};

absl::StatusOr<Listing> List(const std::string& folder) {
  Listing listing;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    std::error_code no_status;
    const fs::file_status status = entry->symlink_status(no_status);
    if (fs::is_directory(status)) {
      listing.folders.push_back(entry->path());
    } else if (name == kMetadata) {
      listing.has_metadata = true;
    } else if (!name.starts_with('.')) {
      if (listing.files.size() == kMaxStreams) {
        return absl::InvalidArgumentError(absl::StrCat(
            "it contains more than ", kMaxStreams, " files; remove those that are not streams"));
      }
      listing.files.push_back(name);
    }
  }
  if (error) return absl::ErrnoToStatus(error.value(), "cannot be read");
  std::sort(listing.files.begin(), listing.files.end());
  std::sort(listing.folders.begin(), listing.folders.end());
  return listing;
}

class Finder {
 public:
  Finder(std::string root, std::vector<struct stat>* files)
      : root_(std::move(root)), files_(files) {}

  absl::Status Find(const std::string& folder, int depth) {
    absl::StatusOr<Listing> listing = List(folder);
    if (!listing.ok()) return Named(folder, listing.status());
    if (listing->has_metadata) {
      RETURN_IF_ERROR(Open(folder, *listing));
    }
    if (depth == kMaxFolderDepth) return absl::OkStatus();
    for (const std::string& below : listing->folders) {
      RETURN_IF_ERROR(Find(below, depth + 1));
    }
    return absl::OkStatus();
  }

  std::vector<TraceFolder> Take() { return std::move(found_); }

 private:
  absl::Status Open(const std::string& folder, const Listing& listing) {
    if (found_.size() == kMaxTraces) {
      return Named(
          root_, absl::InvalidArgumentError(absl::StrCat("it contains more than ", kMaxTraces,
                                                         " traces; import a directory below it")));
    }
    TraceFolder trace{.name = folder, .metadata = "", .streams = {}};
    const std::string metadata = absl::StrCat(folder, "/", kMetadata);
    const auto file = OpenFile(metadata);
    if (!file.ok()) return Named(metadata, file.status());
    absl::StatusOr<std::string> text = ReadAll(file->get(), kMaxMetadata);
    if (!text.ok()) return Named(metadata, text.status());
    trace.metadata = *std::move(text);
    for (const std::string& name : listing.files) {
      const std::string path = absl::StrCat(folder, "/", name);
      absl::StatusOr<std::unique_ptr<DiskFile>> stream = OpenFile(path);
      if (!stream.ok()) return Named(path, stream.status());
      trace.streams.push_back({path.substr(root_.size() + 1), *std::move(stream)});
    }
    found_.push_back(std::move(trace));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<DiskFile>> OpenFile(const std::string& path) {
    absl::StatusOr<std::unique_ptr<DiskFile>> file = DiskFile::Open(AT_FDCWD, path);
    if (!file.ok()) return file;
    struct stat facts = {};
    if (stat(path.c_str(), &facts) == 0) files_->push_back(facts);
    return file;
  }

  const std::string root_;
  std::vector<struct stat>* const files_;
  std::vector<TraceFolder> found_;
};

}  // namespace

absl::StatusOr<std::vector<TraceFolder>> OpenTraces(const std::string& path,
                                                    std::vector<struct stat>* files) {
  std::string root = path;
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  Finder finder(root, files);
  RETURN_IF_ERROR(finder.Find(root, 0));
  std::vector<TraceFolder> found = finder.Take();
  if (found.empty()) {
    return Named(root, absl::InvalidArgumentError("neither this directory nor one below it has "
                                                  "a file 'metadata'; name the directory of a "
                                                  "CTF trace"));
  }
  return found;
}

}  // namespace tools::importing::ctf
