//===- CudaLibraryTest.cpp - libds-cuda.so, where it was built ------------===//
#include "runtime/plugins/CudaLibrary.h"
#include "core/Error.h"
#include "runtime/device/Device.h"
#include "runtime/plugins/LoadCuda.h"
#include "test/unit/runtime/Shell.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace ds::test {
namespace {

using runtime::CudaInfo;
using runtime::CudaLibrary;

TEST(CudaLibrary, HasNoUndefinedSymbol) {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const Outcome outcome = shell("ldd -r " + (folder / "../lib/libds-cuda.so").string());
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  for (const char *sign : {"undefined symbol", "not found"})
    EXPECT_EQ((outcome.output + outcome.errors).find(sign), std::string::npos) << outcome.output << outcome.errors;
  EXPECT_NE(outcome.output.find("libcublasLt.so.13"), std::string::npos) << outcome.output;
}

TEST(CudaLibrary, LoadsWithoutAGpuAndSaysWhatIsMissing) {
  std::string why;
  const CudaLibrary *library = runtime::findCuda(why);
  ASSERT_NE(library, nullptr) << why;
  const CudaInfo info = library->info();
  EXPECT_EQ(info.runtime / 1000, 13);
  EXPECT_EQ(info.cublasLt / 10000, 13u);
  EXPECT_EQ(info.cudnn / 10000, 9u);
  EXPECT_EQ(info.nccl / 10000, 2u);
  if (info.unusable.empty()) {
    EXPECT_FALSE(info.gpus.empty());
    return;
  }
  try {
    (void)library->makeDevice({}, {});
    FAIL() << "there is a device, and yet: " << info.unusable;
  } catch (const Error &error) {
    EXPECT_EQ(error.what(), info.unusable);
  }
}

} // namespace
} // namespace ds::test
