//===- HtmlReportTest.cpp - the page says what the other reports say ------===//
#include "compiler/report/Html.h"
#include "compiler/report/Report.h"
#include "test/unit/report/SmallPlan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace ds::report {
namespace {

using nlohmann::json;
using namespace plan::proto;

std::string pageOf(const Plan &plan, bool all = false) { return report(plan, {Format::Html, all}); }

/// The data beside each drawing.
std::vector<json> figuresOf(const std::string &page) {
  const std::string open = "<script type=\"application/json\">";
  std::vector<json> figures;
  for (size_t at = page.find(open); at != std::string::npos; at = page.find(open, at + 1)) {
    const size_t begin = at + open.size();
    figures.push_back(json::parse(page.substr(begin, page.find("</script>", begin) - begin)));
  }
  return figures;
}

uint64_t peakOf(const json &figure) {
  uint64_t most = 0;
  for (const json &column : figure["columns"]) {
    uint64_t sum = 0;
    for (size_t k = 1; k < column.size(); ++k)
      sum += column[k].get<uint64_t>();
    most = std::max(most, sum);
  }
  return most;
}

size_t count(const std::string &text, const std::string &word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

TEST(HtmlReport, TheDrawingsHaveTheNumbersOfTheJsonReport) {
  const std::vector<json> figures = figuresOf(pageOf(smallPlan()));
  ASSERT_EQ(figures.size(), 2u); // step, evaluate
  const json memory = json::parse(report(smallPlan(), {Format::Json, false}))["ranks_detail"][0]["memory"]["device"];
  EXPECT_EQ(peakOf(figures[0]), memory["phases"]["step"]);
  EXPECT_EQ(peakOf(figures[1]), memory["phases"]["eval"]);
  const json &kinds = figures[0]["kinds"], &peak = figures[0]["columns"][5];
  EXPECT_EQ(kinds, json({"weights", "optimizer", "gradients", "inputs", "activations", "workspace"}));
  EXPECT_EQ(peak[0], "command 1 (/h.0/mlp/MatMul) of backward, micro-batch 0");
  for (size_t k = 0; k < kinds.size(); ++k)
    EXPECT_EQ(peak[k + 1], memory[kinds[k].get<std::string>()]) << kinds[k];
}

TEST(HtmlReport, TheTablesHaveTheNumbersOfTheTextReport) {
  const std::string page = pageOf(smallPlan());
  for (const char *cells :
       {"<td>arena</td><td class=\"right\">12,288</td>", "<td>live at the peak</td><td class=\"right\">10,240</td>",
        "<td>fragmentation</td><td class=\"right\">2,048</td>",
        "<td class=\"inner\">idle slots</td><td class=\"right\">2,048</td>",
        "<td>init</td><td class=\"right\">2,048</td>", "<td>step</td><td class=\"right\">10,240</td>",
        "<td>eval</td><td class=\"right\">5,120</td>", "<td>save</td><td class=\"right\">2,048</td>",
        "<td>scratch</td><td>workspace</td><td class=\"right\">4,096</td>",
        "<td>h.0.w, head.w</td><td>float32</td><td>[16, 16]</td><td "
        "class=\"right\">1,024</td><td>trained</td><td>main</td>",
        "<td>zero_optimization.stage</td><td>0</td><td>honoured</td><td>nothing to do</td>", "peak: 10,240 bytes"})
    EXPECT_NE(page.find(cells), std::string::npos) << cells;
}

TEST(HtmlReport, ARectangleNamesItsBufferAndItsLife) {
  const std::string page = pageOf(smallPlan());
  EXPECT_NE(
      page.find("<title>h\nactivations, 2,048 bytes at 6,144, slot 1 of 2\nfrom forward 1, command 1\nto backward 1, "
                "command 0</title>"),
      std::string::npos);
  EXPECT_NE(page.find("<title>w\nweights, 1,024 bytes at 0\nlive from load to exit</title>"), std::string::npos);
}

TEST(HtmlReport, NamesAreText) {
  Plan plan = smallPlan();
  const std::string name = "</script><script>alert('\"&')</script><!--";
  plan.set_model(name);
  plan.mutable_config(0)->set_note(name);
  plan.mutable_variables(0)->set_name(name);
  plan.mutable_reference()->mutable_ops(1)->set_name(name);
  Role &role = *plan.mutable_roles(0);
  role.set_name(name);
  role.mutable_routines(1)->set_name(name);
  for (Buffer &buffer : *role.mutable_buffers())
    buffer.set_name(name + buffer.name());
  const std::string page = pageOf(plan);
  EXPECT_EQ(count(page, "<script>"), 1u); // the page's own
  EXPECT_EQ(count(page, "<script"), 3u);  // and the data of two drawings
  EXPECT_EQ(count(page, "</script"), 3u);
  EXPECT_EQ(count(page, "<!--"), 0u);
  EXPECT_NE(page.find("&lt;/script&gt;&lt;script&gt;alert(&#39;&quot;&amp;&#39;)"), std::string::npos);
  EXPECT_EQ(figuresOf(page)[0]["columns"][5][0], "command 1 (" + name + ") of " + name + ", micro-batch 0");
}

TEST(HtmlReport, NeedsNothingElse) {
  const std::string page = pageOf(smallPlan());
  for (const char *word : {"http:", "https:", "src=", "@import", "url("})
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  EXPECT_EQ(count(page, "href="), count(page, "href=\"#")); // within the page
  EXPECT_EQ(page, pageOf(smallPlan()));
}

TEST(HtmlReport, ContentsLeadToEverySection) {
  const std::string page = pageOf(smallPlan());
  const size_t sections = count(page, "<h2 id=\"s") + count(page, "<details id=\"s");
  EXPECT_EQ(sections, 4u); // memory, ownership, parameters, configuration
  for (size_t i = 1; i <= sections; ++i) {
    const std::string number = std::to_string(i);
    EXPECT_EQ(count(page, "<li><a href=\"#s" + number + "\">"), 1u) << number;
    EXPECT_EQ(count(page, " id=\"s" + number + "\""), 1u) << number;
  }
  EXPECT_NE(page.find("<a href=\"#s1\">Rank 0 (role main), device memory</a>"), std::string::npos);
}

TEST(HtmlReport, NamesStandBesideThePictureAndInIt) {
  const std::string page = pageOf(smallPlan());
  // At the peak of the step: scratch 4,096 bytes at the highest addresses, two of h, w, m, g and x.
  const size_t list = page.find("<ol class=\"names\">");
  EXPECT_EQ(page.find("<li data-buffer=\"b5\"><span class=\"swatch k5\"></span><span>scratch</span><span "
                      "class=\"dim\">4.00 KiB"),
            page.find("<li ", list));
  EXPECT_NE(page.find("class=\"k5 tile b5\""), std::string::npos);
  EXPECT_NE(page.find("class=\"name\">scratch</text>"), std::string::npos);
}

TEST(HtmlReport, TheHeadSaysTheStepsTimeAndWhatWouldHelp) {
  const std::string page = pageOf(smallPlan()), head = page.substr(0, page.find("<nav>"));
  EXPECT_NE(head.find("<th>step</th><td>about "), std::string::npos) << head;
  EXPECT_NE(
      head.find("<p>What would help:</p>\n<ul>\n<li>less memory: workspaces of kernels hold the most, 4.00 KiB: a "
                "smaller train_micro_batch_size_per_gpu with more gradient_accumulation_steps needs less</li>"),
      std::string::npos)
      << head;
  EXPECT_EQ(head.find("less time"), std::string::npos);
  Plan plan = smallPlan();
  for (int routine : {0, 1}) // the same product in both
    plan.mutable_roles(0)->mutable_routines(routine)->mutable_commands(0)->add_reference(0);
  plan.mutable_recompute()->set_layers(1);
  plan.set_config_json(R"({"deepstatic": {"recompute": "full"}})");
  EXPECT_NE(pageOf(plan).find("<li>less time: 50.0 % more matrix products are computed, to keep less memory: "
                              "deepstatic.recompute &quot;auto&quot; computes again only what has to be</li>"),
            std::string::npos)
      << pageOf(plan).substr(0, 6000);
}

TEST(HtmlReport, OfManyRolesTheFullestAreDrawn) {
  Plan plan = smallPlan();
  Axis &axis = *plan.mutable_world()->add_axes();
  axis.set_name("pipe");
  axis.set_size(12);
  const Role first = plan.roles(0);
  plan.clear_roles();
  for (uint32_t i = 0; i < 12; ++i) {
    Role &role = *plan.add_roles() = first;
    role.set_name("stage" + std::to_string(i));
    role.set_ranks(0, i);
    role.set_ranks(1, i);
    forgetStages(role);
  }
  plan.mutable_roles(11)->mutable_buffers(1)->clear_variable(); // m, which the peak of the last role lacks
  plan.mutable_roles(11)->mutable_buffers(1)->set_scope(Buffer::STEP);
  const std::string page = pageOf(plan);
  EXPECT_EQ(figuresOf(page).size(), 2u * 8);
  EXPECT_NE(page.find("(role stage7), device memory"), std::string::npos);
  EXPECT_EQ(page.find("(role stage11), device memory"), std::string::npos); // least at its peak
  EXPECT_NE(page.find("<td>stage11</td><td>device</td><td class=\"right\">12,288</td><td class=\"right\">9,216</td>"),
            std::string::npos);
  EXPECT_EQ(figuresOf(pageOf(plan, true)).size(), 2u * 12);
  EXPECT_EQ(count(page, "<details id="), 8u); // each with its picture, of which the first is open
  EXPECT_EQ(count(page, "\" open>"), 1u);
  EXPECT_NE(page.find("<details><summary>Rank 11 (role stage11)</summary>"), std::string::npos); // what it holds
}

// 10,000 buffers, each alive in 128 micro-batches.
TEST(HtmlReport, ALargePlanMakesASmallPage) {
  Plan plan = smallPlan();
  Role &role = *plan.mutable_roles(0);
  role.mutable_arenas(0)->set_bytes(12288 + 10000 * 64);
  for (uint64_t i = 0; i < 10000; ++i) {
    Buffer buffer = role.buffers(5); // scratch
    buffer.set_offset(12288 + i * 64);
    buffer.set_bytes(64);
    buffer.set_name("a.name.of.usual.length." + std::to_string(i));
    *role.add_buffers() = buffer;
  }
  Program &step = *role.mutable_programs(0);
  for (uint32_t microbatch = 2; microbatch < 128; ++microbatch)
    for (uint32_t routine : {0u, 1u}) {
      Call &call = *step.add_calls();
      call.set_routine(routine);
      call.set_microbatch(microbatch);
    }
  plan.mutable_training()->set_accumulation_steps(128);
  plan.mutable_training()->set_train_batch_size(8 * 128);
  const std::string page = pageOf(plan);
  EXPECT_LT(page.size(), 3000000u);
  EXPECT_NE(page.find("are merged by category"), std::string::npos);
  EXPECT_EQ(peakOf(figuresOf(page)[0]), 10240u + 10000 * 64);
}

} // namespace
} // namespace ds::report
