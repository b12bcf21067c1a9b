// Runs a fuzz target over the files of the folders it is given, once each, without libFuzzer: the
// corpus as a test that any compiler builds. Exit code 0 if all went well, 2 if nothing was found
// to run; a broken promise aborts, after the file's name was printed.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      // A copy of exactly the file's size, so that the address sanitizer sees a byte too many read.
      const std::vector<char> read((std::istreambuf_iterator<char>(file)), {});
      const std::vector<std::uint8_t> bytes(read.begin(), read.end());
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      ++files;
    }
  }
  if (files == 0) std::fprintf(stderr, "no files: give the folders of a corpus\n");
  return files == 0 ? 2 : 0;
}
