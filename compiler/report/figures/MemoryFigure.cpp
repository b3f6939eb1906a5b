//===- MemoryFigure.cpp - a program's memory as a drawing -----------------===//
#include "compiler/report/MemoryFigure.h"

#include "compiler/report/Facts.h"
#include "compiler/report/Html.h"
#include "compiler/report/Tables.h"
#include "compiler/report/figures/Picture.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/ProgramLives.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Buffer;
using plan::proto::Plan;
using plan::proto::Program;
using plan::proto::Role;

// Tenths of a pixel. The two panels share the time axis and the scale of bytes.
constexpr Tenths left = 900, width = 9600, right = 160;
constexpr Tenths callsTop = 100, callsHeight = 200;
constexpr Tenths stackTop = 560, stackHeight = 2400;
constexpr Tenths arenaTop = 3360, arenaHeight = 3200;
constexpr Tenths bottom = arenaTop + arenaHeight, height = bottom + 320;
constexpr Tenths letter = 65;                       // width of one, about
constexpr Tenths nameLetter = 52, nameHeight = 110; // of a name within a rectangle
constexpr size_t mostNames = 300;                   // written into rectangles
constexpr size_t mostListed = 14;                   // beside the picture

std::string number(Tenths tenths) {
  std::string text = std::to_string(tenths / 10);
  return tenths % 10 == 0 ? text : text + "." + std::to_string(tenths % 10);
}

std::string rect(Tenths x, Tenths y, Tenths w, Tenths h, const std::string &kind, const std::string &title = "") {
  const std::string start = "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(w) +
                            "\" height=\"" + number(h) + "\" class=\"" + kind + "\"";
  return start + (title.empty() ? "/>\n" : "><title>" + escaped(title) + "</title></rect>\n");
}

std::string label(Tenths x, Tenths y, const std::string &kind, const std::string &text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" class=\"" + kind + "\">" + escaped(text) + "</text>\n";
}

std::string line(Tenths x1, Tenths y1, Tenths x2, Tenths y2, const std::string &kind) {
  return "<path d=\"M" + number(x1) + " " + number(y1) + "L" + number(x2) + " " + number(y2) + "\" class=\"" + kind +
         "\"/>\n";
}

class Figure {
public:
  Figure(const Plan &plan, const Role &role, int program, std::string_view space, FigureSize size)
      : plan_(plan), role_(role), program_(role.programs(program)), space_(space), size_(size),
        lives_(role, program, space), columns_(columnsOf(lives_, size.columns)), kinds_(kindsOf()) {
    for (const plan::proto::Arena &arena : role.arenas())
      if (arena.space() == space)
        arenaBytes_ += arena.bytes();
    for (size_t i = 1; i < columns_.size(); ++i)
      if (columns_[i].total > columns_[peak_].total)
        peak_ = i;
    scale_ = std::max({arenaBytes_, columns_.empty() ? 0 : columns_[peak_].total, uint64_t(1)});
  }

  std::string html() const {
    const Tenths arenaY = yOf(arenaBytes_, arenaTop, arenaHeight);
    const ArenaPicture arena = arenaPicture(role_, space_, lives_, width, bottom - arenaY, size_.tiles);
    return "<figure class=\"memory\">\n<div class=\"drawing\">\n<svg viewBox=\"0 0 " + number(left + width + right) +
           " " + number(height) + "\" role=\"img\">\n" + frameSvg() + callsSvg() + stackSvg() + arenaSvg(arena) +
           peakSvg() + "<path class=\"cross\" d=\"M0 " + number(stackTop) + "V" + number(bottom) +
           "\"/>\n</svg>\n</div>\n" + namesHtml(arena) + legendHtml() +
           "<p class=\"zoom\">zoom <button>1</button> <button>2</button> <button>4</button> <button>8</button></p>\n"
           "<output>Point anywhere, or touch it, to read the bytes of that instant and the buffer there.</output>\n" +
           "<figcaption>" + escaped(captionOf(arena)) + "</figcaption>\n<script type=\"application/json\">" +
           scriptData(dataJson()) + "</script>\n</figure>\n";
  }

private:
  Tenths yOf(uint64_t bytes, Tenths top, Tenths panel) const {
    return top + panel - Tenths(static_cast<unsigned __int128>(bytes) * uint64_t(panel) / scale_);
  }
  Tenths xOf(int64_t column) const { return left + columnBegin(column, int64_t(columns_.size()), width); }

  /// Axes: bytes at powers of two, the arena's size, the words.
  std::string frameSvg() const {
    uint64_t step = 1;
    while (step < scale_ / 5)
      step *= 2;
    std::string svg;
    for (const auto &[top, panel] : {std::pair(stackTop, stackHeight), std::pair(arenaTop, arenaHeight)})
      for (uint64_t bytes = 0; bytes <= scale_; bytes += step) {
        const Tenths y = yOf(bytes, top, panel);
        svg += line(left, y, left + width, y, "tick");
        svg += label(left - 80, y + 40, "end", bytesText(bytes));
      }
    svg += label(left, stackTop - 60, "head", "live bytes, by category");
    svg += label(left, arenaTop - 60, "head", "the arena: live buffers at their addresses");
    svg += label(left + width / 2, bottom + 220, "middle",
                 "time: " + plural(uint64_t(lives_.instants()), "command") + " of " + program_.name() + ", in order");
    const Tenths y = yOf(arenaBytes_, stackTop, stackHeight);
    return svg + line(left, y, left + width, y, "limit") +
           label(left + width, y - 40, "end", "arena " + bytesText(arenaBytes_));
  }

  /// A band for each call; those thinner than a pixel share one, named after the longest, by its
  /// micro-batch alone where there is no room for more.
  std::string callsSvg() const {
    std::string svg;
    const auto at = [&](int call) {
      return columnBegin(lives_.instantOf(call, 0), std::max<int64_t>(lives_.instants(), 1), width);
    };
    for (int call = 0, next; call < program_.calls_size(); call = next) {
      int longest = call;
      for (next = call; next < program_.calls_size() && at(next) - at(call) < 10; ++next)
        if (commandsOf(next) > commandsOf(longest))
          longest = next;
      const Tenths begin = at(call), length = at(next) - begin;
      const std::string words = nameOf(call) + (next - call > 1 ? " to " + nameOf(next - 1) : "");
      svg += rect(left + begin, callsTop, length, callsHeight, isBackward(longest) ? "call backward" : "call",
                  words + ": " + plural(uint64_t(lives_.instantOf(next, 0) - lives_.instantOf(call, 0)), "command"));
      for (const std::string &name : {nameOf(longest), std::to_string(program_.calls(longest).microbatch())})
        if (Tenths(name.size()) * letter < length) {
          svg += label(left + begin + length / 2, callsTop + 140, "middle", name);
          break;
        }
    }
    return svg;
  }

  int64_t commandsOf(int call) const { return lives_.instantOf(call + 1, 0) - lives_.instantOf(call, 0); }

  bool isBackward(int call) const {
    return role_.routines(int(program_.calls(call).routine())).phase() == plan::proto::Routine::BACKWARD;
  }

  /// "forward 3".
  std::string nameOf(int call) const {
    return role_.routines(int(program_.calls(call).routine())).name() + " " +
           std::to_string(program_.calls(call).microbatch());
  }

  std::string stackSvg() const {
    const Tenths arenaY = yOf(arenaBytes_, stackTop, stackHeight);
    std::string svg = rect(left, arenaY, width, stackTop + stackHeight - arenaY, "padding",
                           "free: in the arena, but no buffer is live there at this instant");
    std::vector<uint64_t> below(columns_.size()), above;
    for (Buffer::Category category : kinds_) {
      above = below;
      uint64_t most = 0;
      for (size_t i = 0; i < columns_.size(); ++i) {
        above[i] += columns_[i].bytes[size_t(category)];
        most = std::max(most, columns_[i].bytes[size_t(category)]);
      }
      svg += "<path class=\"" + styleOf(category) + "\" d=\"" + layer(below, above) + "\"><title>" +
             std::string(categoryName(category)) + ": at most " + grouped(most) + " bytes</title></path>\n";
      below = above;
    }
    return svg;
  }

  /// The outline between two staircases: along the upper one, and back along the lower.
  std::string layer(const std::vector<uint64_t> &below, const std::vector<uint64_t> &above) const {
    const int64_t count = int64_t(columns_.size());
    std::string path = "M" + number(xOf(0)) + " " + number(yOf(above[0], stackTop, stackHeight));
    for (int64_t i = 1; i < count; ++i)
      path += stair(xOf(i), above[size_t(i) - 1], above[size_t(i)]);
    path += "H" + number(xOf(count)) + "V" + number(yOf(below.back(), stackTop, stackHeight));
    for (int64_t i = count - 1; i > 0; --i)
      path += stair(xOf(i), below[size_t(i)], below[size_t(i) - 1]);
    return path + "H" + number(xOf(0)) + "Z";
  }

  std::string stair(Tenths x, uint64_t from, uint64_t to) const {
    const Tenths before = yOf(from, stackTop, stackHeight), after = yOf(to, stackTop, stackHeight);
    return before == after ? "" : "H" + number(x) + "V" + number(after);
  }

  std::string arenaSvg(const ArenaPicture &arena) const {
    const Tenths top = yOf(arenaBytes_, arenaTop, arenaHeight);
    std::string svg =
        rect(left, top, width, bottom - top, "padding", "free: no buffer is live at these addresses at this instant") +
        "<g transform=\"translate(" + number(left) + " " + number(top) + ")\">\n";
    for (const Smudge &smudge : arena.smudges)
      svg += rect(smudge.x, smudge.y, std::min(smudge.width, width - smudge.x), smudge.height, styleOf(smudge.category),
                  std::string(categoryName(smudge.category)) + ": several buffers, too thin to be drawn separately");
    for (const Tile &tile : arena.tiles)
      svg +=
          rect(tile.x, tile.y, tile.width, tile.height,
               styleOf(role_.buffers(tile.buffer).category()) + " tile b" + std::to_string(tile.buffer), titleOf(tile));
    return svg + namesSvg(arena) + "</g>\n";
  }

  /// Into the rectangles that have room: the whole name, or its end.
  std::string namesSvg(const ArenaPicture &arena) const {
    std::string svg;
    size_t written = 0;
    for (const Tile &tile : arena.tiles) {
      const std::string &name = role_.buffers(tile.buffer).name();
      const size_t room = size_t(std::max<Tenths>(0, tile.width - 60) / nameLetter);
      if (tile.height < nameHeight || room < std::min<size_t>(name.size(), 10) || written++ == mostNames)
        continue;
      svg += label(tile.x + 30, tile.y + tile.height / 2 + 35, "name",
                   name.size() <= room ? name : ".." + endOf(name, room - 2));
    }
    return svg;
  }

  /// The last bytes of a name, from the start of a character.
  static std::string endOf(const std::string &name, size_t bytes) {
    size_t begin = name.size() - bytes;
    while (begin < name.size() && (uint8_t(name[begin]) & 0xc0) == 0x80)
      ++begin;
    return name.substr(begin);
  }

  /// The largest that are live at the peak of this program, from the one at the highest addresses.
  std::string namesHtml(const ArenaPicture &arena) const {
    if (columns_.empty())
      return "";
    const int64_t peak = lives_.instantOf(columns_[peak_].call, columns_[peak_].command);
    std::vector<const Tile *> live;
    for (const Tile &tile : arena.tiles)
      if (role_.buffers(tile.buffer).scope() == Buffer::PLAN || (tile.first <= peak && peak <= tile.last))
        live.push_back(&tile);
    std::ranges::stable_sort(live, std::greater(),
                             [&](const Tile *tile) { return role_.buffers(tile->buffer).bytes(); });
    live.resize(std::min(live.size(), mostListed));
    std::ranges::stable_sort(live, std::less(), &Tile::y);
    std::string html = "<ol class=\"names\">\n";
    for (const Tile *tile : live) {
      const Buffer &buffer = role_.buffers(tile->buffer);
      html += "<li data-buffer=\"b" + std::to_string(tile->buffer) + "\">" + swatch(styleOf(buffer.category())) +
              "<span>" + escaped(buffer.name()) + "</span><span class=\"dim\">" + bytesText(buffer.bytes()) +
              "</span></li>\n";
    }
    return html + "</ol>\n";
  }

  std::string titleOf(const Tile &tile) const {
    const Buffer &buffer = role_.buffers(tile.buffer);
    std::string title = buffer.name() + "\n" + std::string(categoryName(buffer.category())) + ", " +
                        plural(buffer.bytes(), "byte") + " at " + grouped(plan::slotOffset(buffer, tile.slot));
    if (buffer.slots() > 1)
      title += ", slot " + std::to_string(tile.slot) + " of " + std::to_string(buffer.slots());
    if (buffer.scope() == Buffer::PLAN)
      return title + "\nlive from load to exit";
    if (tile.times > 1)
      return title + "\n" + grouped(tile.times) + " lives, drawn as one; the first is from " + instantOf(tile.first);
    return title + "\nfrom " + instantOf(tile.first) + "\nto " + instantOf(tile.last);
  }

  std::string instantOf(int64_t instant) const {
    const auto [call, command] = lives_.placeOf(instant);
    return nameOf(call) + ", command " + std::to_string(command);
  }

  std::string peakSvg() const {
    if (columns_.empty())
      return "";
    const Tenths x = (xOf(int64_t(peak_)) + xOf(int64_t(peak_) + 1)) / 2;
    const Tenths y = yOf(columns_[peak_].total, stackTop, stackHeight);
    const bool late = x > left + width / 2; // the words stand on the side that has room
    return line(x, y, x, bottom, "peak") + "<circle class=\"peak\" cx=\"" + number(x) + "\" cy=\"" + number(y) +
           "\" r=\"3.5\"/>\n" +
           label(x + (late ? -100 : 100), arenaTop - 230, late ? "end strong" : "strong",
                 "peak: " + grouped(columns_[peak_].total) + " bytes");
  }

  std::string captionOf(const ArenaPicture &arena) const {
    std::string text;
    if (lives_.instants() > int64_t(columns_.size()))
      text += "Each column of the upper panel stands for about " +
              grouped(uint64_t(lives_.instants()) / columns_.size()) +
              " commands and shows the one with the most live bytes. ";
    if (arena.thin > 0)
      text += grouped(arena.thin) + (arena.thin == 1 ? " rectangle" : " rectangles") + " less than " +
              (arena.least == pixel ? "a pixel" : number(arena.least) + " pixels") +
              " high or wide are merged by category; tables and totals count every byte. ";
    return text;
  }

  /// The categories that are ever alive, in the stack's order.
  std::vector<Buffer::Category> kindsOf() const {
    std::vector<Buffer::Category> kinds;
    for (Buffer::Category category : stackOrder)
      if (std::any_of(columns_.begin(), columns_.end(), [&](const Column &c) { return c.bytes[size_t(category)] > 0; }))
        kinds.push_back(category);
    return kinds;
  }

  std::string legendHtml() const {
    std::string html = "<p class=\"legend\">";
    for (Buffer::Category category : kinds_)
      html += "<span title=\"" + std::string(categoryMeaning(category)) + "\">" + swatch(styleOf(category)) +
              std::string(categoryName(category)) + "</span> ";
    return html + "<span title=\"in the arena, but no buffer is live there\">" + swatch("padding") +
           "free</span></p>\n";
  }

  std::string dataJson() const {
    nlohmann::ordered_json data = {{"left", double(left) / 10}, {"width", double(width) / 10}};
    data["kinds"] = nlohmann::json::array();
    data["columns"] = nlohmann::json::array();
    for (Buffer::Category category : kinds_)
      data["kinds"].push_back(categoryName(category));
    for (const Column &column : columns_) {
      nlohmann::ordered_json one = {instantText(plan_, role_, program_, column.call, column.command)};
      for (Buffer::Category category : kinds_)
        one.push_back(column.bytes[size_t(category)]);
      data["columns"].push_back(std::move(one));
    }
    return data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  const Plan &plan_;
  const Role &role_;
  const Program &program_;
  std::string_view space_;
  FigureSize size_;
  plan::ProgramLives lives_;
  std::vector<Column> columns_;
  std::vector<Buffer::Category> kinds_;
  size_t peak_ = 0; // of columns_
  uint64_t arenaBytes_ = 0, scale_ = 1;
};

} // namespace

std::string styleOf(Buffer::Category category) { return "k" + std::to_string(int(category)); }

std::string memoryFigure(const Plan &plan, const Role &role, int program, std::string_view space, FigureSize size) {
  return Figure(plan, role, program, space, size).html();
}

} // namespace ds::report
