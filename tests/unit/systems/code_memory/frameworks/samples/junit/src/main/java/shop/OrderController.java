package shop;

import org.springframework.web.bind.annotation.*;

@RestController
@RequestMapping("/orders")
class OrderController {
    @GetMapping("/{id}")
    Order show(@PathVariable long id) { return null; }

    @PutMapping("/{id}")
    Order change(@PathVariable long id) { return null; }
}
