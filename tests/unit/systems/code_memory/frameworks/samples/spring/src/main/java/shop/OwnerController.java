package shop;

import org.springframework.web.bind.annotation.*;

@RestController
@RequestMapping("/owners")
class OwnerController {

    @GetMapping("/{ownerId}")
    Owner show(@PathVariable int ownerId) { return null; }

    @PostMapping
    Owner create(@RequestBody Owner owner) { return owner; }

    @RequestMapping(path = "/{ownerId}/pets", method = RequestMethod.PUT)
    Owner pets(@PathVariable int ownerId) { return null; }
}
