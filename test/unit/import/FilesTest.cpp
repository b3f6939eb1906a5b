//===- FilesTest.cpp - external data that is not trusted -------------------------===//
#include "compiler/import/files/Files.h"
#include "compiler/import/files/Failure.h"
#include "test/unit/import/Support.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace ds;
using namespace ds::import;
namespace fs = std::filesystem;

namespace {
/// Imports a model in `folder` whose parameter w.0 (12 bytes) is external data.
Outcome importExternal(const TemporaryFolder &folder, const std::string &location, const std::string &offset = "",
                       const std::string &length = "") {
  onnx::ModelProto model = smallModel(R"(node { op_type: "Add" input: ["x", "w.0"] output: "y" })");
  onnx::TensorProto &tensor = *model.mutable_graph()->mutable_initializer(0);
  tensor.clear_float_data();
  tensor.set_data_location(1);
  for (const auto &[key, value] : {std::pair{"location", location}, {"offset", offset}, {"length", length}}) {
    if (value.empty() && std::string(key) != "location")
      continue;
    onnx::StringStringEntryProto &entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  ImportOptions options;
  options.path = folder.write("model.onnx", model.SerializeAsString());
  return runImport(options);
}
const std::string rule = "external data must be a file in the model's folder, named by a relative path without '..'";
} // namespace

TEST(Files, RefersToExternalDataByNameAndRange) {
  TemporaryFolder folder;
  fs::create_directory(folder.path() / "parts");
  folder.write("parts/weights", std::string(20, 'w'));
  const Outcome outcome = importExternal(folder, "parts/weights", "8", "12");
  ASSERT_TRUE(outcome.ok) << outcome.error;
  EXPECT_NE(outcome.text.find("#train.file<\"parts/weights\", 8, 12>"), std::string::npos) << outcome.text;
}

TEST(Files, RefusesPathsThatLeaveTheFolder) {
  TemporaryFolder folder;
  folder.write("weights", std::string(12, 'w'));
  for (const std::string &location :
       {std::string(), (folder.path() / "weights").string(), std::string("../weights"), std::string("a/../weights"),
        std::string("weights\0", 8), std::string("weights/..")}) {
    const Outcome outcome = importExternal(folder, location);
    EXPECT_FALSE(outcome.ok);
    EXPECT_NE(outcome.error.find(rule), std::string::npos) << outcome.error;
  }
}

TEST(Files, RefusesSymbolicLinks) {
  TemporaryFolder folder, elsewhere;
  elsewhere.write("weights", std::string(12, 'w'));
  fs::create_symlink(elsewhere.path() / "weights", folder.path() / "file");
  fs::create_directory_symlink(elsewhere.path(), folder.path() / "folder");
  for (const char *location : {"file", "folder/weights"})
    EXPECT_NE(importExternal(folder, location).error.find("symbolic link"), std::string::npos);
}

TEST(Files, RefusesWhatIsNoRegularFile) {
  TemporaryFolder folder;
  fs::create_directory(folder.path() / "directory");
  ASSERT_EQ(mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  for (const char *location : {"directory", "pipe"})
    EXPECT_NE(importExternal(folder, location).error.find("is not a regular file"), std::string::npos);
  EXPECT_NE(importExternal(folder, "absent").error.find("cannot open external data 'absent'"), std::string::npos);
}

TEST(Files, ChecksRangesWithoutOverflow) {
  TemporaryFolder folder;
  folder.write("weights", std::string(16, 'w'));
  EXPECT_TRUE(importExternal(folder, "weights", "4").ok);
  EXPECT_NE(importExternal(folder, "weights", "5").error.find("'weights', which has only 16"), std::string::npos);
  EXPECT_NE(importExternal(folder, "weights", "18446744073709551612", "12").error.find("which has only 16"),
            std::string::npos);
  EXPECT_NE(importExternal(folder, "weights", "0", "8").error.find("has 8 bytes of data, but float32 [3] needs 12"),
            std::string::npos);
  for (const char *offset : {"-4", "0x4", " 4", "4 ", "18446744073709551616", "four"})
    EXPECT_NE(importExternal(folder, "weights", offset).error.find("not a decimal number"), std::string::npos)
        << offset;
}

TEST(Files, RefusesDataBothInsideAndOutside) {
  onnx::ModelProto model = smallModel(R"(node { op_type: "Add" input: ["x", "w.0"] output: "y" })");
  model.mutable_graph()->mutable_initializer(0)->set_data_location(1);
  EXPECT_NE(runImport(model).error.find("both inside the model and outside"), std::string::npos);
}

TEST(Files, FindsTheModelInAFolder) {
  TemporaryFolder folder;
  const std::string bytes =
      smallModel(R"(node { op_type: "Add" input: ["x", "w.0"] output: "y" })").SerializeAsString();
  ImportOptions options;
  options.path = folder.path();
  EXPECT_NE(runImport(options).error.find("holds no .onnx files"), std::string::npos);
  folder.write("a.onnx", bytes);
  EXPECT_NE(runImport(options).text.find("module @a"), std::string::npos);
  folder.write("b.onnx", bytes);
  EXPECT_NE(runImport(options).error.find("holds several .onnx files"), std::string::npos);
  folder.write("model.onnx", bytes);
  EXPECT_NE(runImport(options).text.find("#train.file<\"model.onnx\", "), std::string::npos);
}
