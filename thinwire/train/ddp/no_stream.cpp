// CPU: the mutex of the communication thread's queue is all the order there is to keep.
#include "thinwire/train/ddp/stream_order.hpp"

namespace thinwire::train {
namespace {

class NoStream final : public StreamOrder {
 public:
  void gradients_recorded() override {}
  void enter() override {}
  void exchange_recorded() override {}
  void wait_for_exchange() override {}
  void share(const at::Tensor&) override {}
};

}  // namespace

std::unique_ptr<StreamOrder> make_no_stream() {
  return std::make_unique<NoStream>();
}

std::unique_ptr<StreamOrder> make_stream_order(const at::Device& device) {
  return device.is_cpu() ? make_no_stream() : make_device_stream(device);
}

}  // namespace thinwire::train
