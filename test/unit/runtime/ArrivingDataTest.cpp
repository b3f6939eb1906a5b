//===- ArrivingDataTest.cpp - --data -: files that are named while a run goes on
#include "runtime/data/ArrivingData.h"
#include "core/DType.h"
#include "core/Error.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/UnreadColumns.h"
#include "test/unit/runtime/Files.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::ArrivingData;

/// Lines that a test writes, and two samples a step of them.
class Arriving : public testing::Test {
protected:
  ~Arriving() override {
    finish();
    ::close(ends_[0]);
  }
  void say(std::string_view text) const {
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), ssize_t(text.size()));
  }
  void finish() {
    if (ends_[1] >= 0)
      ::close(ends_[1]);
    ends_[1] = -1;
  }
  std::string file(const std::string &name, const std::vector<int64_t> &samples) const {
    writeFile(folder / name, safetensors("{\"x\":{\"dtype\":\"I64\",\"shape\":[" + std::to_string(samples.size()) +
                                             "],\"data_offsets\":[0," + std::to_string(samples.size() * 8) + "]}}",
                                         bytesOf(samples)));
    return folder / name;
  }
  /// The two samples of the next step; nothing at the end.
  std::vector<int64_t> next(const std::function<bool()> &ended = [] { return false; }) {
    const std::optional<ArrivingData::Samples> samples = data.next(ended);
    std::vector<int64_t> values(samples ? 2 : 0);
    if (samples)
      EXPECT_TRUE(samples->data->read(0, samples->first, 2, reinterpret_cast<std::byte *>(values.data())).ok());
    return values;
  }

  TemporaryFolder folder;

private:
  std::array<int, 2> ends_ = [] {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::pipe(ends.data()), 0);
    return ends;
  }();

protected:
  ArrivingData data{{{.name = "x", .dtype = DType::I64, .sampleShape = {}}}, 2, ends_[0]};
};

using Step = std::vector<int64_t>;

/// As of data that is there from the beginning; a column that each file has is named once.
TEST_F(Arriving, NamesColumnsThatNoInputTakes) {
  runtime::UnreadColumns unread;
  const std::string empty = R"(":{"dtype":"I64","shape":[0],"data_offsets":[0,0]},)";
  for (const auto &[columns, note] : {std::pair(std::vector<std::string>{}, ""),
                                      std::pair(std::vector<std::string>{"mask", "a"},
                                                "the data has a, mask, which the model of this plan does not take"),
                                      std::pair(std::vector<std::string>{"mask"}, ""),
                                      std::pair(std::vector<std::string>{"b", "mask"},
                                                "the data has b, which the model of this plan does not take")}) {
    std::string entries;
    for (const std::string &column : columns)
      entries += "\"" + column + empty;
    writeFile(folder / "c", safetensors("{" + entries + R"("x":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}})",
                                        bytesOf(std::vector<int64_t>{1, 2})));
    say(folder / "c\n");
    const std::optional<ArrivingData::Samples> samples = data.next([] { return false; });
    ASSERT_TRUE(samples);
    EXPECT_EQ(unread.note(samples->data->unread()), note);
  }
}

TEST_F(Arriving, TakesEachSampleOnceInTheOrderOfTheLines) {
  const std::string a = file("a", {1, 2}), b = file("b", {3, 4, 5, 6});
  say(b + "\n\n" + a.substr(0, 3));
  EXPECT_EQ(next(), (Step{3, 4}));
  EXPECT_EQ(next(), (Step{5, 6}));
  say(a.substr(3)); // the last line lacks its end
  finish();
  EXPECT_EQ(next(), (Step{1, 2}));
  EXPECT_EQ(next(), Step{});
  EXPECT_EQ(next(), Step{});
}

TEST_F(Arriving, AFileMayGoWhenItsStepsAreDone) {
  say(file("a", {1, 2}) + "\n");
  EXPECT_EQ(next(), (Step{1, 2}));
  say(file("a", {3, 4}) + "\n"); // the same name anew
  EXPECT_EQ(next(), (Step{3, 4}));
}

TEST_F(Arriving, WaitsForALineAndEndsWhenAsked) {
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    say(file("a", {1, 2}) + "\n");
  });
  EXPECT_EQ(next(), (Step{1, 2}));
  later.join();
  int asked = 0;
  EXPECT_EQ(next([&] { return ++asked == 3; }), Step{});
}

TEST_F(Arriving, RefusesWhatIsNoWholeStep) {
  say(file("three", {1, 2, 3}) + "\n");
  EXPECT_ERROR(next(), "three has 3 samples; a file that --data - is told of has 2, those of a step, or a multiple");
  say(folder / "nowhere\n");
  EXPECT_ERROR(next(), "nowhere cannot be opened");
}

TEST_F(Arriving, RefusesALineThatIsNoName) {
  const std::string text(70000, 'x');
  std::thread writer([&] { say(text); });
  EXPECT_ERROR(next(), "a line of --data - has more than 65536 bytes");
  writer.join();
}

} // namespace
} // namespace ds::test
