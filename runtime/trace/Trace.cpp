//===- Trace.cpp - what queues did, as a Chrome trace ---------------------===//
#include "runtime/trace/Trace.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace ds::runtime {
namespace {

/// A JSON string, whatever bytes it holds.
std::string quoted(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string metadata(const char *kind, uint32_t rank, uint32_t queue, const std::string &name) {
  return "{\"ph\": \"M\", \"name\": \"" + std::string(kind) + "\", \"pid\": " + std::to_string(rank) +
         ", \"tid\": " + std::to_string(queue) + ", \"args\": {\"name\": " + quoted(name) + "}},\n";
}

/// The part of an event's text that depends on its label and row only.
std::string labelText(const TraceLabel &label, uint32_t rank, uint32_t queue) {
  return "{\"ph\": \"X\", \"name\": " + quoted(label.name) + ", \"cat\": " + quoted(label.category) +
         ", \"pid\": " + std::to_string(rank) + ", \"tid\": " + std::to_string(queue) +
         ", \"args\": {\"op\": " + quoted(label.op) + ", \"routine\": " + quoted(label.routine);
}

} // namespace

TraceRow::TraceRow(uint32_t rank, uint32_t queue, std::string name, uint64_t capacity)
    : rank_(rank), queue_(queue), name_(std::move(name)), capacity_(capacity),
      records_(std::make_unique_for_overwrite<TraceRecord[]>(capacity)) {}

std::string TraceRow::events() const {
  std::string text = metadata("process_name", rank_, queue_, "rank " + std::to_string(rank_)) +
                     metadata("thread_name", rank_, queue_, name_);
  std::map<const TraceLabel *, std::string> labels;
  const uint64_t all = added_.load(std::memory_order_acquire);
  for (uint64_t i = all - std::min(all, capacity_); i < all; ++i) {
    const TraceRecord &record = records_[i % capacity_];
    std::string &label = labels[record.label];
    if (label.empty())
      label = labelText(*record.label, rank_, queue_);
    std::array<char, 160> numbers; // microseconds with three decimals
    std::snprintf(numbers.data(), numbers.size(),
                  ", \"step\": %llu, \"microbatch\": %llu}, \"ts\": %lld.%03d, \"dur\": %lld.%03d},\n",
                  static_cast<unsigned long long>(record.step), static_cast<unsigned long long>(record.microbatch),
                  static_cast<long long>(record.beginNs / 1000), int(record.beginNs % 1000),
                  static_cast<long long>((record.endNs - record.beginNs) / 1000),
                  int((record.endNs - record.beginNs) % 1000));
    text += label;
    text += numbers.data();
  }
  return text;
}

std::string Trace::events() const {
  std::string text;
  for (const TraceRow &row : rows_)
    text += row.events();
  return text;
}

std::string chromeTrace(const std::string &events) {
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + events.substr(0, events.rfind(',')) + "\n]}\n";
}

} // namespace ds::runtime
