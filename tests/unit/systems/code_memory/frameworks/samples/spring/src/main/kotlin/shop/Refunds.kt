package shop

import org.springframework.stereotype.Service

@Service
class RefundStore {
    @KafkaListener(topics = ["refunds"])
    fun receive(text: String) {}
}

class StockService
