<?php

namespace App\Controller;

use Symfony\Component\Routing\Attribute\Route;

#[Route('/orders', name: 'order_'), IsGranted('ROLE_USER')]
final class OrderController extends AbstractController
{
    #[Route('/', name: 'index', methods: ['GET'])]
    #[Route('/page/{page}', name: 'paged', methods: ['GET'])]
    public function index(int $page = 1): Response { return $this->render('orders.html.twig'); }

    #[Route(path: '/{id:order}/edit', name: 'edit', methods: ['GET', 'POST'])]
    #[IsGranted('edit', subject: 'order')]
    public function edit(Order $order): Response { return $this->render('edit.html.twig'); }

    #[Route('/search')]
    public function search(): Response { return $this->render('search.html.twig'); }
}
