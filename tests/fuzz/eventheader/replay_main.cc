// Runs a fuzz target once on each file of the given folders, without libFuzzer, so that any
// compiler can build the corpus as a test. Prints the name of each file before it runs the file; a
// failed check aborts the program. Exit code 0: all files passed; 2: no file was found.
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
      // The copy has exactly the file's size, so that the address sanitizer detects a read of one
      // byte too many.
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
